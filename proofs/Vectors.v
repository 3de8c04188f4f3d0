(** Vectors as functions of an index: inner products, squared norms, and the few facts about
    them that every bound rests on. Over any ordered ring, so for integers and for real numbers
    alike; norms are squared throughout, so no root is ever taken. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory Num.Def.
Local Open Scope ring_scope.

Section Vectors.

Variable R : realDomainType.

Definition dot (I : finType) (u v : I -> R) : R := \sum_i u i * v i.

(** The squared norm ‖u‖². *)
Definition sq (I : finType) (u : I -> R) : R := dot u u.

Definition add (I : finType) (u v : I -> R) : I -> R := fun i => u i + v i.
Definition sub (I : finType) (u v : I -> R) : I -> R := fun i => u i - v i.

(** The matrix w ⊗ a, as a vector whose index is a pair. *)
Definition outer (I J : finType) (w : I -> R) (a : J -> R) : I * J -> R :=
  fun p => w p.1 * a p.2.

(** What rows of a data set, each with its contribution, add up to. *)
Definition total (I : finType) (rows : seq (I -> R)) : I -> R := fun i => \sum_(x <- rows) x i.

Section OneIndex.

Variable I : finType.
Implicit Types u v w : I -> R.

Lemma dotC u v : dot u v = dot v u.
Proof. by apply: eq_bigr => i _; rewrite mulrC. Qed.

Lemma eq_dot u u' v v' : u =1 u' -> v =1 v' -> dot u v = dot u' v'.
Proof. by move=> uu vv; apply: eq_bigr => i _; rewrite uu vv. Qed.

Lemma eq_sq u v : u =1 v -> sq u = sq v.
Proof. by move=> uv; apply: eq_dot. Qed.

Lemma dot_addl u v w : dot (add u v) w = dot u w + dot v w.
Proof. by rewrite -big_split; apply: eq_bigr => i _; rewrite mulrDl. Qed.

Lemma dot_subl u v w : dot (sub u v) w = dot u w - dot v w.
Proof. by rewrite -sumrB; apply: eq_bigr => i _; rewrite mulrBl. Qed.

Lemma dot_suml (T : Type) (s : seq T) (u : T -> I -> R) w :
  dot (fun i => \sum_(x <- s) u x i) w = \sum_(x <- s) dot (u x) w.
Proof.
by rewrite /dot exchange_big; apply: eq_bigr => i _; rewrite mulr_suml.
Qed.

Lemma sq_ge0 u : 0 <= sq u.
Proof. by apply: sumr_ge0 => i _; rewrite -expr2 sqr_ge0. Qed.

Lemma sq_add u v : sq (add u v) = sq u + sq v + dot u v *+ 2.
Proof.
rewrite /sq dot_addl !(dotC _ (add u v)) !dot_addl (dotC v u); ring.
Qed.

Lemma sq_sub u v : sq (sub u v) = sq u + sq v - dot u v *+ 2.
Proof.
rewrite /sq dot_subl !(dotC _ (sub u v)) !dot_subl (dotC v u); ring.
Qed.

Lemma sq_subC u v : sq (sub u v) = sq (sub v u).
Proof. by rewrite !sq_sub (dotC v u); ring. Qed.

Lemma sq_scale (c : R) u : sq (fun i => c * u i) = c ^+ 2 * sq u.
Proof. by rewrite /sq /dot mulr_sumr; apply: eq_bigr => i _; ring. Qed.

(** Coordinates that are no larger make a vector that is no longer: so cutting towards zero only
    shrinks. *)
Lemma sq_shrinks u v : (forall i, `|u i| <= `|v i|) -> sq u <= sq v.
Proof.
move=> uv; apply: ler_sum => i _; rewrite -!expr2.
by rewrite -(real_normK (num_real (u i))) -(real_normK (num_real (v i))) ler_pexpn2r ?nnegrE.
Qed.

(** ‖u ± v‖² is at most twice the sum of the squares. *)
Lemma sq_add2 u v : sq (add u v) <= 2%:R * (sq u + sq v).
Proof.
have -> : 2%:R * (sq u + sq v) = sq (add u v) + sq (sub u v) by rewrite sq_add sq_sub; ring.
by rewrite ler_addl sq_ge0.
Qed.

Lemma sq_sub2 u v : sq (sub u v) <= 2%:R * (sq u + sq v).
Proof.
have -> : 2%:R * (sq u + sq v) = sq (sub u v) + sq (add u v) by rewrite sq_add sq_sub; ring.
by rewrite ler_addl sq_ge0.
Qed.

(** Inner products are at most the product of norms. *)
Lemma cauchy_schwarz u v : dot u v ^+ 2 <= sq u * sq v.
Proof.
have E (f g : I -> R) : \sum_i \sum_j f i * g j = (\sum_i f i) * (\sum_i g i).
  by rewrite mulr_suml; apply: eq_bigr => i _; rewrite mulr_sumr.
have D : \sum_i \sum_j (u i * v j - u j * v i) ^+ 2 = 2%:R * (sq u * sq v - dot u v ^+ 2).
  transitivity (\sum_i \sum_j ((u i * u i) * (v j * v j))
    + \sum_i \sum_j ((v i * v i) * (u j * u j))
    - (\sum_i \sum_j ((u i * v i) * (u j * v j))) *+ 2).
    rewrite -big_split -sumrMnl -sumrB; apply: eq_bigr => i _ /=.
    by rewrite -big_split -sumrMnl -sumrB; apply: eq_bigr => j _ /=; ring.
  rewrite !(E (fun i => u i * u i)) (E (fun i => v i * v i)) (E (fun i => u i * v i)).
  by rewrite -!/(dot _ _) -!/(sq _); ring.
rewrite -subr_ge0 -(@pmulr_rge0 _ 2%:R) ?ltr0n // -D.
by apply: sumr_ge0 => i _; apply: sumr_ge0 => j _; rewrite sqr_ge0.
Qed.

(** The same for vectors with known bounds on their norms. *)
Lemma dot_bound (A B : R) u v :
  0 <= A -> 0 <= B -> sq u <= A ^+ 2 -> sq v <= B ^+ 2 -> `|dot u v| <= A * B.
Proof.
move=> A0 B0 uA vB; rewrite -(@ler_pexpn2r _ 2) ?nnegrE ?mulr_ge0 //.
rewrite real_normK ?num_real // exprMn; apply: le_trans (cauchy_schwarz u v) _.
by apply: ler_pmul => //; apply: sq_ge0.
Qed.

(** And for two vectors of one length, without a root. *)
Lemma dot_bound_sq (A : R) u v : sq u <= A -> sq v <= A -> `|dot u v| <= A.
Proof.
move=> uA vA; have A0 : 0 <= A := le_trans (sq_ge0 u) uA.
rewrite -(@ler_pexpn2r _ 2) ?nnegrE // real_normK ?num_real //.
by apply: le_trans (cauchy_schwarz u v) _; rewrite expr2; apply: ler_pmul => //; apply: sq_ge0.
Qed.

(** The triangle inequality, with bounds in place of norms. *)
Lemma norm_add (A B : R) u v :
  0 <= A -> 0 <= B -> sq u <= A ^+ 2 -> sq v <= B ^+ 2 -> sq (add u v) <= (A + B) ^+ 2.
Proof.
move=> A0 B0 uA vB; rewrite sq_add (_ : (A + B) ^+ 2 = A ^+ 2 + B ^+ 2 + (A * B) *+ 2); last ring.
apply: ler_add; first exact: ler_add.
by rewrite ler_muln2r /=; apply: le_trans (ler_norm _) (dot_bound A0 B0 uA vB).
Qed.

Lemma norm_sub (A B : R) u v :
  0 <= A -> 0 <= B -> sq u <= A ^+ 2 -> sq v <= B ^+ 2 -> sq (sub u v) <= (A + B) ^+ 2.
Proof.
move=> A0 B0 uA vB; rewrite -(@eq_sq (add u (fun i => -1 * v i))).
  by apply: norm_add => //; rewrite sq_scale sqrrN expr1n mul1r.
by move=> i; rewrite /add /sub mulN1r.
Qed.

(** The triangle inequality for many vectors. *)
Lemma norm_sum (T : Type) (s : seq T) (A : T -> R) (u : T -> I -> R) :
  (forall x, 0 <= A x) -> (forall x, sq (u x) <= A x ^+ 2) ->
  sq (fun i => \sum_(x <- s) u x i) <= (\sum_(x <- s) A x) ^+ 2.
Proof.
move=> A0 uA; elim: s => [|x s IH].
  rewrite big_nil expr0n /= /sq /dot big1 // => i _; rewrite big_nil mul0r //.
rewrite big_cons (@eq_sq _ (add (u x) (fun i => \sum_(y <- s) u y i))).
  by apply: norm_add => //; apply: sumr_ge0.
by move=> i; rewrite big_cons.
Qed.

End OneIndex.

Section Outer.

Variables I J : finType.

(** ⟨w ⊗ a, w' ⊗ a'⟩ = ⟨w, w'⟩·⟨a, a'⟩. *)
Theorem dot_outer (w w' : I -> R) (a a' : J -> R) :
  dot (outer w a) (outer w' a') = dot w w' * dot a a'.
Proof.
rewrite {2}/dot mulr_suml (eq_bigr (fun i => \sum_j (w i * a j) * (w' i * a' j))).
  by rewrite pair_bigA.
by move=> i _; rewrite mulr_sumr; apply: eq_bigr => j _; ring.
Qed.

(** ‖w ⊗ a‖² = ‖w‖²·‖a‖². *)
Theorem sq_outer (w : I -> R) (a : J -> R) : sq (outer w a) = sq w * sq a.
Proof. exact: dot_outer. Qed.

End Outer.

Section Neighbours.

Variable I : finType.

(** Of two data sets the first has one row more, anywhere. *)
Variant one_more : seq (I -> R) -> seq (I -> R) -> (I -> R) -> Prop :=
  OneMore before x after : one_more (before ++ x :: after) (before ++ after) x.

(** Two data sets differ in one row. *)
Variant one_other : seq (I -> R) -> seq (I -> R) -> (I -> R) -> (I -> R) -> Prop :=
  OneOther before x y after :
    one_other (before ++ x :: after) (before ++ y :: after) x y.

(** Sums move by just what the row has: added, removed (`sq_subC`) or replaced. *)
Theorem one_more_distance D D' x :
  one_more D D' x -> sq (sub (total D) (total D')) = sq x.
Proof.
case=> b {}x a; apply: eq_sq => i.
by rewrite /sub /total !big_cat big_cons /=; ring.
Qed.

Theorem one_other_distance D D' x y :
  one_other D D' x y -> sq (sub (total D) (total D')) = sq (sub x y).
Proof.
case=> b {}x {}y a; apply: eq_sq => i.
by rewrite /sub /total !big_cat !big_cons /=; ring.
Qed.

End Neighbours.

End Vectors.
