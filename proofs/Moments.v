(** Second moments beside sums of outer products: one norm for both, and how far a row that is
    added, removed or replaced moves them. Over any ordered field; g is the public weight of the
    moments, and enters as g² = `g2`. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Discreet Require Import Vectors Memory.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory Num.Def.
Local Open Scope ring_scope.

Section Moments.

Variable F : realFieldType.
Variable I : finType.
Variable r : nat.
Notation J := 'I_r.

Variable g2 : F.
Hypothesis g2_ge0 : 0 <= g2.

(** The norm of sums in three parts: S, the diagonal of G, and what is above it, which counts
    twice. *)
Definition parts_sq (S : I * J -> F) (G : J * J -> F) : F :=
  sq S + g2 * (\sum_i G (i, i) ^+ 2)
  + 2%:R * g2 * (\sum_(p : J * J | (p.1 < p.2)%N) G p ^+ 2).

(** It is the norm of S beside that of the whole symmetric matrix. *)
Theorem parts_norm S (G : J * J -> F) :
  (forall i j, G (i, j) = G (j, i)) -> parts_sq S G = sq S + g2 * sq G.
Proof.
move=> sym; rewrite /parts_sq -addrA; congr (_ + _).
have -> : sq G = \sum_(p : J * J | p.1 == p.2) G p ^+ 2
    + (\sum_(p : J * J | (p.1 < p.2)%N) G p ^+ 2 + \sum_(p : J * J | (p.2 < p.1)%N) G p ^+ 2).
  rewrite /sq /dot (bigID (fun p : J * J => p.1 == p.2)) /=; congr (_ + _).
  rewrite (bigID (fun p : J * J => (p.1 < p.2)%N)) /=; congr (_ + _).
    apply: eq_bigl => -[i j] /=; rewrite -val_eqE /=.
    by rewrite andbC; case: ltngtP.
  apply: eq_bigl => -[i j] /=; rewrite -val_eqE /=.
  by case: ltngtP.
have -> : \sum_(p : J * J | (p.2 < p.1)%N) G p ^+ 2 = \sum_(p : J * J | (p.1 < p.2)%N) G p ^+ 2.
  rewrite (reindex_inj (h := fun p : J * J => (p.2, p.1))) /=.
    by apply: eq_bigr => -[i j] _ /=; rewrite sym.
  by move=> [a b] [c d] /= [-> ->].
have -> : \sum_(p : J * J | p.1 == p.2) G p ^+ 2 = \sum_i G (i, i) ^+ 2.
  transitivity (\sum_(i : J) \sum_(j | i == j) G (i, j) ^+ 2).
    by rewrite pair_big_dep /=; apply: eq_big => -[i j].
  by apply: eq_bigr => i _; rewrite (big_pred1 i) // => j; rewrite eq_sym.
ring.
Qed.

(** What a row adds: w ⊗ a and, with features that may be cut (`b`), b ⊗ b. *)
Theorem moments_norm (features weight cut : F) (w : I -> F) (a b : J -> F) :
  sq w <= weight -> sq a <= features -> sq b <= cut ->
  parts_sq (outer w a) (outer b b) <= features * weight + g2 * cut ^+ 2.
Proof.
move=> ww af bc; rewrite parts_norm; last by move=> i j; rewrite /outer mulrC.
apply: ler_add; first exact: (contribution_norm (x := (w, a)) (conj ww af)).
by apply: ler_wpmul2l => //; rewrite sq_outer expr2; apply: ler_pmul => //; apply: sq_ge0.
Qed.

(** The difference of two rows, in the norm of `parts_sq`, from their inner products. *)
Lemma moments_difference (w w' : I -> F) (a a' b b' : J -> F) :
  parts_sq (sub (outer w a) (outer w' a')) (sub (outer b b) (outer b' b')) =
  sq w * sq a + sq w' * sq a' - 2%:R * (dot w w' * dot a a')
  + g2 * (sq b ^+ 2 + sq b' ^+ 2 - 2%:R * dot b b' ^+ 2).
Proof.
rewrite parts_norm; last by move=> i j; rewrite /sub /outer /=; ring.
by rewrite !sq_sub !sq_outer !dot_outer; ring.
Qed.

(** The top of slope·x - g²·x² over 0 ≤ x ≤ most, as `SecondMoments.row_sensitivity` finds it. *)
Definition top (slope most : F) : F :=
  let at_ := Num.min (Num.max (slope / (2%:R * g2)) 0) (Num.max most 0) in
  slope * at_ - g2 * at_ ^+ 2.

Lemma topP (slope most x : F) :
  0 < g2 -> 0 <= x -> x <= most -> slope * x - g2 * x ^+ 2 <= top slope most.
Proof.
move=> g0 x0 xm; rewrite /top; set v := slope / _.
have -> : slope = 2%:R * g2 * v by rewrite /v mulrC divfK // mulf_neq0 ?gt_eqF // ltr0n.
have m0 : 0 <= most := le_trans x0 xm; rewrite (max_l m0) -subr_ge0.
set y := Num.min _ _.
have -> : 2%:R * g2 * v * y - g2 * y ^+ 2 - (2%:R * g2 * v * x - g2 * x ^+ 2)
        = g2 * ((y - x) * (2%:R * v - y - x)) by ring.
apply: mulr_ge0 => //; rewrite /y; have [v0|v0] := leP 0 v.
  have [vm|vm] := leP v most.
    have -> : (v - x) * (2%:R * v - v - x) = (v - x) ^+ 2 by ring.
    exact: sqr_ge0.
  apply: mulr_ge0; first by rewrite subr_ge0.
  rewrite -addrA -opprD subr_ge0 mulr_natl mulr2n; apply: ler_add; first exact: ltW.
  by apply: le_trans xm _; apply: ltW.
rewrite (min_l m0) sub0r mulNr -mulrN subr0 opprB.
apply: mulr_ge0 => //; rewrite subr_ge0; apply: le_trans x0.
by rewrite pmulr_rle0 ?ltr0n // ltW.
Qed.

(** The square of `SecondMoments.row_sensitivity` under `replace`: ⟨w, w'⟩ lies in [least, most],
    ⟨a, a'⟩ is at least `inner`. *)
Definition moments_squared (features least most inner : F) : F :=
  2%:R * (features * most + g2 * features ^+ 2
          + Num.max (Num.max 0 (top (- least) features)) (top most (- inner))).

Theorem moments_replace (features weight least most inner : F) (w w' : I -> F) (a a' : J -> F) :
  0 < g2 -> sq w <= weight -> sq w' <= weight -> sq a <= features -> sq a' <= features ->
  weight <= most -> least <= dot w w' <= most -> inner <= dot a a' ->
  parts_sq (sub (outer w a) (outer w' a')) (sub (outer a a) (outer a' a'))
    <= moments_squared features least most inner.
Proof.
move=> g0 ww ww' af af' wm /andP[lo hi] ic; rewrite moments_difference.
set c := dot a a'; have f0 : 0 <= features := le_trans (sq_ge0 _) af.
have sw0 : 0 <= sq w := sq_ge0 _; have sw0' : 0 <= sq w' := sq_ge0 _.
have sa0 : 0 <= sq a := sq_ge0 _; have sa0' : 0 <= sq a' := sq_ge0 _.
have cf : `|c| <= features by apply: dot_bound_sq.
have gain : - (dot w w' * c) - g2 * c ^+ 2
    <= Num.max (Num.max 0 (top (- least) features)) (top most (- inner)).
  rewrite !le_maxr; case: (lerP 0 c) => c0.
    apply/orP; left; apply/orP; right.
    apply: le_trans (topP _ g0 c0 _); last by rewrite -(ger0_norm c0).
    by rewrite ler_add2r mulNr ler_opp2 ler_wpmul2r.
  apply/orP; right; have c0' : 0 <= - c by rewrite oppr_ge0 ltW.
  apply: le_trans (topP _ g0 c0' _); last by rewrite ler_opp2.
  by rewrite sqrrN ler_add2r -mulrN ler_wpmul2r.
have b1 : sq w * sq a <= features * most.
  by rewrite [features * _]mulrC; apply: ler_pmul => //; apply: le_trans ww wm.
have b2 : sq w' * sq a' <= features * most.
  by rewrite [features * _]mulrC; apply: ler_pmul => //; apply: le_trans ww' wm.
have b3 : g2 * sq a ^+ 2 <= g2 * features ^+ 2 by rewrite ler_wpmul2l // ler_pexpn2r ?nnegrE.
have b4 : g2 * sq a' ^+ 2 <= g2 * features ^+ 2 by rewrite ler_wpmul2l // ler_pexpn2r ?nnegrE.
rewrite /moments_squared [X in X <= _](_ : _ = (sq w * sq a + sq w' * sq a')
  + (g2 * sq a ^+ 2 + g2 * sq a' ^+ 2)
  + (- (dot w w' * c) - g2 * c ^+ 2 + (- (dot w w' * c) - g2 * c ^+ 2))); last by rewrite /c; ring.
rewrite [X in _ <= X](_ : _ = (features * most + features * most)
  + (g2 * features ^+ 2 + g2 * features ^+ 2)
  + (Num.max (Num.max 0 (top (- least) features)) (top most (- inner))
     + Num.max (Num.max 0 (top (- least) features)) (top most (- inner)))); last ring.
by do ?[apply: ler_add].
Qed.

(** Features that are cut before they are squared: the two parts are bounded by themselves. *)
Theorem moments_replace_coarse (alone cut : F) (w w' : I -> F) (a a' b b' : J -> F) :
  sq b <= cut -> sq b' <= cut -> sq (sub (outer w a) (outer w' a')) <= alone ->
  parts_sq (sub (outer w a) (outer w' a')) (sub (outer b b) (outer b' b'))
    <= alone + 2%:R * (g2 * cut ^+ 2).
Proof.
move=> bc bc' al; rewrite parts_norm; last by move=> i j; rewrite /sub /outer /=; ring.
apply: ler_add => //; rewrite mulrCA ler_wpmul2l // sq_sub !sq_outer dot_outer.
have sb0 : 0 <= sq b := sq_ge0 _; have sb0' : 0 <= sq b' := sq_ge0 _.
rewrite [2%:R * _]mulr_natl [cut ^+ 2 *+ 2]mulr2n expr2.
apply: (@le_trans _ _ (sq b * sq b + sq b' * sq b')).
  by rewrite ler_subl_addr ler_addl mulrn_wge0 // -expr2 sqr_ge0.
by apply: ler_add; apply: ler_pmul.
Qed.

(** A product with 2^-b, cut towards zero, is no longer than R/2^b. *)
Theorem coarse_norm (scale features : F) (a b : J -> F) :
  (forall i, `|b i| <= `|a i * scale|) -> sq a <= features -> sq b <= features * scale ^+ 2.
Proof.
move=> ba af; apply: le_trans (sq_shrinks ba) _.
rewrite (@eq_sq _ _ _ (fun i => scale * a i)); last by move=> i; rewrite mulrC.
by rewrite sq_scale mulrC; apply: ler_wpmul2r => //; apply: sqr_ge0.
Qed.

(** Noise σ on S, σ/g on the diagonal and σ/(g·√2) above it: the squared distance in units of the
    noise is that of `parts_sq` over σ². *)
Theorem moments_noise (sigma g root2 : F) (S : I * J -> F) (G : J * J -> F) :
  sigma != 0 -> g ^+ 2 = g2 -> root2 ^+ 2 = 2%:R ->
  \sum_p (S p / sigma) ^+ 2 + \sum_i (G (i, i) / (sigma / g)) ^+ 2
    + \sum_(p : J * J | (p.1 < p.2)%N) (G p / (sigma / (g * root2))) ^+ 2
  = parts_sq S G / sigma ^+ 2.
Proof.
move=> s0 gg rr; rewrite /parts_sq 2!mulrDl; congr (_ + _ + _).
- by rewrite /sq /dot mulr_suml; apply: eq_bigr => p _; rewrite -expr2 expr_div_n.
- rewrite mulr_sumr mulr_suml; apply: eq_bigr => i _.
  by rewrite invf_div mulrA expr_div_n exprMn gg [g2 * _]mulrC.
rewrite mulr_sumr mulr_suml; apply: eq_bigr => p _.
by rewrite invf_div mulrA expr_div_n !exprMn gg rr [g2 * _]mulrC [_ * G p ^+ 2]mulrC.
Qed.

End Moments.
