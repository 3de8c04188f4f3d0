(** Releases that are chosen after looking at those before, with a limit on every path: from the
    axioms of Gaussian differential privacy (`gaussian_dp`), which are assumed and not proved.

    Everything is said of one pair of neighbours: a mechanism is the pair of laws of its output,
    and its trade-off curve says how well the two can be told apart. v stands for μ². *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Discreet Require Import Vectors.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory Num.Def.
Local Open Scope ring_scope.

(** What is assumed: Dong, Roth, Su, JRSS-B 2022 (arXiv 1905.02383), by the names there. *)
Record gaussian_dp (F : realFieldType) := GaussianDP {
  (** Trade-off functions; `above f g`: f ≥ g everywhere, so f is more private. *)
  tradeoff : Type;
  above : tradeoff -> tradeoff -> Prop;
  tensor : tradeoff -> tradeoff -> tradeoff;
  (** G_μ of N(0, 1) against N(μ, 1), by v = μ². *)
  gauss : F -> tradeoff;

  (** Pairs of laws on an output, and how well they can be told apart. *)
  laws : Type -> Type;
  curve : forall O, laws O -> tradeoff;
  (** Something public; a mechanism and one that is chosen by its outcome; rounded Gaussian noise
      of the scales σ on integers. *)
  public : forall O, O -> laws O;
  process : forall O O', (O -> O') -> laws O -> laws O';
  and_then : forall O (O' : O -> Type), laws O -> (forall o, laws (O' o)) -> laws {o : O & O' o};
  noisy : forall I : finType, (I -> int) -> (I -> int) -> (I -> F) -> laws (I -> int);

  (** Being above is transitive. *)
  above_trans : forall f g h, above f g -> above g h -> above f h;
  (** What is public is at least as private as G_0, and G_μ falls with μ. *)
  public_gauss : forall O (o : O), above (curve (public o)) (gauss 0);
  gauss_falls : forall v v', 0 <= v -> v <= v' -> above (gauss v) (gauss v');
  (** Lemma 2.9 (post-processing). *)
  process_above : forall O O' (f : O -> O') (p : laws O), above (curve (process f p)) (curve p);
  (** Theorem 3.2 (composition): the second mechanism may depend on the first one's outcome, if its
      curve is above g for each. *)
  compose_above : forall O (O' : O -> Type) (p : laws O) (next : forall o, laws (O' o)) f g,
    above (curve p) f -> (forall o, above (curve (next o)) g) ->
    above (curve (and_then p next)) (tensor f g);
  (** Corollary 3.3: products of Gaussians are Gaussian, and μ² adds up. *)
  tensor_gauss : forall v v', 0 <= v -> 0 <= v' -> above (tensor (gauss v) (gauss v')) (gauss (v + v'));
  (** Theorem 2.7, with a scale for each number, and rounded (Lemma 2.9). *)
  noisy_gauss : forall (I : finType) (x x' : I -> int) (sigma : I -> F) v,
    (forall i, 0 < sigma i) -> \sum_i ((x i - x' i)%:~R / sigma i) ^+ 2 <= v ->
    above (curve (noisy x x' sigma)) (gauss v);
}.

Section Programs.

Variable F : realFieldType.
Variable G : gaussian_dp F.

(** μ²-Gaussian: at least as private as N(0, 1) against N(μ, 1). *)
Definition is_gaussian O (p : laws G O) (v : F) := above (curve p) (gauss G v).

(** A program releases something, with its μ², looks at it, and goes on as it likes, or stops.
    Programs end, but no number of releases is fixed. *)
Inductive program : Type :=
  | Stop
  | Release (O : Type) (p : laws G O) (v : F) (next : O -> program).

(** All that a program releases. *)
Fixpoint transcript (P : program) : Type :=
  match P with Stop => unit | @Release A p v next => {o : A & transcript (next o)} end.

Fixpoint run (P : program) : laws G (transcript P) :=
  match P with
  | Stop => public G tt
  | @Release A p v next => and_then p (fun o => run (next o))
  end.

(** Each release is as private as its μ² says, given what came before. *)
Fixpoint honest (P : program) : Prop :=
  match P with
  | Stop => True
  | @Release A p v next => 0 <= v /\ is_gaussian p v /\ forall o, honest (next o)
  end.

(** What has been spent at some point of some path: Σ μ_i². *)
Fixpoint spent (P : program) (s : F) : Prop :=
  s = 0 \/ match P with
  | Stop => False
  | @Release A p v next => s = v \/ exists o s', spent (next o) s' /\ s = v + s'
  end.

Lemma spent_nothing P : spent P 0. Proof. by case: P => *; left. Qed.

(** Ledger, 3: if no path ever spends more than B², all releases together are like one Gaussian
    mechanism with μ = B, however each was chosen. *)
Theorem adaptive_composition (P : program) (B2 : F) :
  honest P -> (forall s, spent P s -> s <= B2) -> is_gaussian (run P) B2.
Proof.
elim: P B2 => [|O p v next IH] B2 honestly limit.
  apply: above_trans (public_gauss _ _) _; apply: gauss_falls => //.
  exact/limit/spent_nothing.
case: honestly => v0 [pv hn]; have vB : v <= B2 by apply: limit; right; left.
apply: (@above_trans _ _ _ (tensor (gauss G v) (gauss G (B2 - v)))).
  apply: compose_above => // o; apply: IH (hn o) _ => s so.
  by rewrite ler_subr_addl; apply: limit; right; right; exists o, s.
have := @tensor_gauss _ G v (B2 - v) v0; rewrite subr_ge0 => /(_ vB).
by rewrite [v + _]addrC subrK.
Qed.

(** Whatever is made of the releases afterwards is as private. *)
Theorem adaptive_answers (P : program) (B2 : F) O (answer : transcript P -> O) :
  honest P -> (forall s, spent P s -> s <= B2) -> is_gaussian (process answer (run P)) B2.
Proof.
by move=> hP limit; apply: above_trans (process_above _ _) (adaptive_composition hP limit).
Qed.

(** Rounds, 5: release i has a public share s_i of the squared budget, so μ_i² = s_i/σ². *)
Fixpoint rounds (sigma : F) (shares : seq F) (P : program) : Prop :=
  match shares, P with
  | [::], Stop => True
  | s :: rest, @Release A p v next =>
      v = s / sigma ^+ 2 /\ is_gaussian p v /\ forall o, rounds sigma rest (next o)
  | _, _ => False
  end.

Lemma rounds_spend sigma shares P :
  0 < sigma -> all (>= 0) shares -> rounds sigma shares P ->
  honest P /\ forall s, spent P s -> s <= (\sum_(x <- shares) x) / sigma ^+ 2.
Proof.
move=> g0; have gg : 0 <= (sigma ^+ 2)^-1 by rewrite invr_ge0 exprn_ge0 // ltW.
elim: shares P => [|x rest IH] [|O p v next] //=.
  by move=> _ _; split=> // s [->|[]]; rewrite big_nil mul0r.
case/andP=> x0 r0 [-> [pv rn]]; have rest0 : 0 <= \sum_(y <- rest) y.
  by rewrite big_seq sumr_ge0 // => y yr; apply: (allP r0).
split=> [|s]; first by do ?split=> //; [rewrite mulr_ge0 | move=> o; case: (IH _ r0 (rn o))].
rewrite big_cons => -[->|[->|[o [s' [so ->]]]]].
- by rewrite mulr_ge0 ?addr_ge0.
- by rewrite ler_wpmul2r // ler_addl.
by rewrite mulrDl ler_add2l; case: (IH _ r0 (rn o)) => _; apply.
Qed.

(** All rounds together are one Gaussian mechanism of sensitivity 1 and scale σ, if the shares add
    up to at most one. *)
Theorem rounds_together sigma shares P :
  0 < sigma -> all (>= 0) shares -> \sum_(x <- shares) x <= 1 -> rounds sigma shares P ->
  is_gaussian (run P) (1 / sigma ^+ 2).
Proof.
move=> g0 s0 s1 rP; case: (rounds_spend g0 s0 rP) => hP sP.
apply: adaptive_composition => // s /sP /le_trans; apply.
by rewrite ler_wpmul2r // invr_ge0 exprn_ge0 // ltW.
Qed.

End Programs.

(** The axioms contradict nothing: they hold of a ledger, which writes down what each release spends
    and knows nothing of laws. (That they hold of real laws is what the sources prove.) *)
Section Ledger.

Variable F : realFieldType.

Definition ledger : gaussian_dp F.
Proof.
refine (@GaussianDP F F (fun f g => f <= g) +%R id
  (fun O => (O * F)%type) (fun O p => p.2) (fun O o => (o, 0)) (fun O O' f p => (f p.1, p.2))
  (fun O O' p next => (existT O' p.1 (next p.1).1, p.2 + (next p.1).2))
  (fun I x x' sigma => (x, \sum_i ((x i - x' i)%:~R / sigma i) ^+ 2))
  _ _ _ _ _ _ _) => //=.
- by move=> f g h; apply: le_trans.
- by move=> O O' p next f g pf ng; apply: ler_add.
Defined.

(** And in it a program spends what its outcome says, so the theorem is not empty. *)
Theorem ledger_says (O : Type) (o : O) (v : F) : is_gaussian (G := ledger) (o, v) v.
Proof. exact: lexx. Qed.

End Ledger.
