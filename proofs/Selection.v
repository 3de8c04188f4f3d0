(** What is in the data: how far one unit moves the totals of names, and what a threshold adds. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Discreet Require Import Vectors.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory Num.Def.
Local Open Scope ring_scope.

Section Totals.

Variable F : realFieldType.

(** Weights w_j ≤ L·d_j/ℓ with ℓ² ≥ Σ d_j² are no longer than L together. *)
Theorem weights_norm (J : finType) (L l : F) (d w : J -> F) :
  0 <= L -> 0 < l -> sq d <= l ^+ 2 ->
  (forall j, 0 <= d j) -> (forall j, 0 <= w j) -> (forall j, w j <= L * d j / l) ->
  sq w <= L ^+ 2.
Proof.
move=> L0 l0 dl d0 w0 wd; apply: (@le_trans _ _ (sq (fun j => L / l * d j))).
  apply: sq_shrinks => j; rewrite (ger0_norm (w0 j)) ger0_norm ?mulr_ge0 ?invr_ge0 ?(ltW l0) //.
  by apply: le_trans (wd j) _; rewrite mulrAC.
rewrite sq_scale expr_div_n mulrAC ler_pdivr_mulr ?exprn_gt0 //.
by apply: ler_wpmul2l => //; apply: sqr_ge0.
Qed.

(** Neither unit adds a negative number: so a replaced one moves totals by at most √2·L. *)
Theorem names_replaced (I : finType) (L2 : F) (u v : I -> F) :
  (forall i, 0 <= u i) -> (forall i, 0 <= v i) -> sq u <= L2 -> sq v <= L2 ->
  sq (sub u v) <= 2%:R * L2.
Proof.
move=> u0 v0 uL vL; rewrite sq_sub mulrDl mul1r; apply: (@le_trans _ _ (sq u + sq v)).
  by rewrite ler_subl_addr ler_addl mulrn_wge0 // sumr_ge0 // => i _; rewrite mulr_ge0.
exact: ler_add.
Qed.

End Totals.

Section Threshold.

Variable F : realFieldType.

(** Some of the names of a unit are told with no larger probability than any of all: a product of
    numbers of at most one grows if factors are left out. *)
Theorem some_names (J : finType) (some : pred J) (hidden : J -> F) :
  (forall j, 0 <= hidden j <= 1) ->
  1 - \prod_(j | some j) hidden j <= 1 - \prod_j hidden j.
Proof.
move=> h; rewrite ler_add2l ler_opp2 [X in X <= _](bigID some) /=.
have p0 (P : pred J) : 0 <= \prod_(j | P j) hidden j.
  by apply: prodr_ge0 => j _; case/andP: (h j).
apply: ler_pimulr => //; elim/big_rec: _ => [|j x _ x1]; first exact: lexx.
by case/andP: (h j) => h0 h1; apply: le_trans (ler_wpmul2l h0 x1) _; rewrite mulr1.
Qed.

(** What is in the data, 4. M is the release and M_C the one that only knows common names; a and b
    bound the chance that a name of x alone, or of x' alone, is told; e is e^ε; P and Q are the
    probabilities of S_0 under M_C. *)
Theorem both_directions (a b p e P Q inside outside delta : F) :
  0 <= a -> a <= p -> 0 <= b -> b <= p -> p <= 1 -> 0 <= e -> 0 <= Q -> P <= 1 ->
  inside <= a + (1 - a) * P -> (1 - b) * Q <= outside -> P - e * Q <= delta ->
  inside - e * outside <= p + (1 - p) * delta.
Proof.
move=> a0 ap b0 bp p1 e0 Q0 P1 hin hout hd.
apply: (@le_trans _ _ (a + (1 - a) * P - e * ((1 - b) * Q))).
  by apply: ler_sub => //; apply: ler_wpmul2l.
apply: (@le_trans _ _ (p + (1 - p) * (P - e * Q))); last first.
  by rewrite ler_add2l; apply: ler_wpmul2l => //; rewrite subr_ge0.
rewrite -subr_ge0.
have -> : p + (1 - p) * (P - e * Q) - (a + (1 - a) * P - e * ((1 - b) * Q))
    = (p - a) * (1 - P) + (p - b) * (e * Q) by ring.
by apply: addr_ge0; apply: mulr_ge0; rewrite ?subr_ge0 // mulr_ge0.
Qed.

End Threshold.
