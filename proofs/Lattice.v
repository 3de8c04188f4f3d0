(** Rounding, clipping and exact sums: what is added is integers, and no longer than claimed.

    A float operation enters by one property: its result is off by at most u of the true result
    (`off`). That float64 has it with u = 2^-53, where nothing underflows, is IEEE 754 and not
    proved here. *)

From Coq Require Import ZArith Lia List.
From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From mathcomp.zify Require Import ssrZ zify.
From Discreet Require Import Constants Vectors.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory Num.Def.
Local Open Scope ring_scope.

Section Clip.

Variable F : rcfType.
Variable I : finType.

(** `computed` is off by at most u of `true`. *)
Definition off (u true computed : F) := `|computed - true| <= u * `|true|.

Lemma off_most u x c : off u x c -> `|c| <= (1 + u) * `|x|.
Proof.
move=> xc; rewrite -(subrK x c); apply: le_trans (ler_norm_add _ _) _.
by rewrite mulrDl mul1r addrC ler_add2l.
Qed.

Lemma off_least u x c : off u x c -> 0 <= x -> (1 - u) * x <= c.
Proof.
rewrite /off => xc x0; move: xc; rewrite (ger0_norm x0) ler_distl => /andP[lo _].
by rewrite mulrBl mul1r.
Qed.

(** Clipping, rounding by rounding. z is a row of integers; its squared norm is exact, and longer
    than the radius'. The factor is radius/‖z‖ times 1 - m: squared norm to float, root, quotient
    and product; then each coordinate times the factor, and cut towards zero. *)
Variant clipped_by (u m radius : F) (z t : I -> F) : Prop :=
  Clipped (norm root quotient factor : F) (product : I -> F) of
    off u (sq z) norm &
    off u (Num.sqrt norm) root &
    off u (radius / root) quotient &
    off u (quotient * (1 - m)) factor &
    (forall i, off u (z i * factor) (product i)) &
    (forall i, `|t i| <= `|product i|).

(** 1 - m covers five roundings if m is at least 8·u. *)
Lemma margin (u m : F) : 0 <= u -> 8%:R * u <= m -> (1 + u) ^+ 3 * (1 - m) <= (1 - u) ^+ 2.
Proof.
move=> u0 um; apply: (@le_trans _ _ ((1 + u) ^+ 3 * (1 - 8%:R * u))).
  by rewrite ler_wpmul2l ?exprn_ge0 ?addr_ge0 ?ler01 // ler_add2l ler_opp2.
rewrite -subr_ge0.
have -> : (1 - u) ^+ 2 - (1 + u) ^+ 3 * (1 - 8%:R * u)
    = 3%:R * u + 22%:R * u ^+ 2 + 23%:R * u ^+ 3 + 8%:R * u ^+ 4 by ring.
by rewrite !addr_ge0 // mulr_ge0 ?exprn_ge0 ?ler0n.
Qed.

Theorem clipped_norm (u m radius : F) (z t : I -> F) :
  0 <= u -> u < 1 -> 8%:R * u <= m -> m <= 1 -> 0 <= radius -> 0 < sq z ->
  clipped_by u m radius z t -> sq t <= radius ^+ 2.
Proof.
move=> u0 u1 um m1 r0 z0 [n r q f p no ro qo fo po tp].
pose rho := Num.sqrt (sq z).
have rho0 : 0 < rho by rewrite sqrtr_gt0.
have rhoE : rho ^+ 2 = sq z by rewrite sqr_sqrtr // ltW.
have v0 : 0 < 1 - u by rewrite subr_gt0.
have nl := off_least no (ltW z0).
have n0 : 0 <= n by apply: le_trans nl; rewrite mulr_ge0 // ltW.
have nr : (1 - u) * rho <= Num.sqrt n.
  rewrite -(@ler_pexpn2r _ 2) ?nnegrE ?sqrtr_ge0 //; last by rewrite mulr_ge0 // ltW.
  rewrite sqr_sqrtr // exprMn rhoE; apply: le_trans nl; apply: ler_wpmul2r; first exact: ltW.
  rewrite expr2; apply: ler_pimulr; first exact: ltW.
  by rewrite ler_subl_addr ler_addl.
have rl : (1 - u) ^+ 2 * rho <= r.
  apply: le_trans (off_least ro (sqrtr_ge0 _)).
  by rewrite expr2 -mulrA; apply: ler_wpmul2l => //; apply: ltW.
have vv0 : 0 < (1 - u) ^+ 2 * rho by rewrite mulr_gt0 ?exprn_gt0.
have rp : 0 < r := lt_le_trans vv0 rl.
have o0 : 0 <= 1 + u by rewrite addr_ge0 ?ler01.
pose b := (1 + u) ^+ 2 * (1 - m) * (radius / ((1 - u) ^+ 2 * rho)).
have m0 : 0 <= 1 - m by rewrite subr_ge0.
have qb : `|q| <= (1 + u) * (radius / ((1 - u) ^+ 2 * rho)).
  apply: le_trans (off_most qo) _; apply: ler_wpmul2l => //.
  rewrite ger0_norm ?divr_ge0 ?(ltW rp) //; apply: ler_wpmul2l => //.
  by rewrite lef_pinv ?posrE.
have fb : `|f| <= b.
  apply: le_trans (off_most fo) _; rewrite normrM (ger0_norm m0).
  have -> : b = (1 + u) * ((1 + u) * (radius / ((1 - u) ^+ 2 * rho)) * (1 - m)).
    by rewrite /b; move: (radius / _) => v; ring.
  by apply: ler_wpmul2l => //; apply: ler_wpmul2r.
apply: (@le_trans _ _ (sq (fun i => radius / rho * z i))); last first.
  by rewrite sq_scale expr_div_n rhoE divfK // gt_eqF.
apply: sq_shrinks => i; apply: le_trans (tp i) _; apply: le_trans (off_most (po i)) _.
have rr0 : 0 <= radius / rho by rewrite divr_ge0 // ltW.
rewrite [`|z i * f|]normrM [`|radius / rho * _|]normrM (ger0_norm rr0) mulrCA mulrC.
apply: ler_wpmul2r => //.
apply: (@le_trans _ _ ((1 + u) * b)); first exact: ler_wpmul2l.
have -> : (1 + u) * b = (1 + u) ^+ 3 * (1 - m) / (1 - u) ^+ 2 * (radius / rho).
  by rewrite /b; field; rewrite !gt_eqF.
apply: ler_pimull => //; rewrite ler_pdivr_mulr ?exprn_gt0 // mul1r.
exact: margin.
Qed.

(** `Lattice.clip_rows`: rows within the radius stay, others are cut; either way ‖t‖² ≤ radius². *)
Theorem clip_rows (u m radius : F) (z t : I -> F) :
  0 <= u -> u < 1 -> 8%:R * u <= m -> m <= 1 -> 0 <= radius ->
  (sq z <= radius ^+ 2 -> t =1 z) ->
  (radius ^+ 2 < sq z -> clipped_by u m radius z t) ->
  sq t <= radius ^+ 2.
Proof.
move=> u0 u1 um m1 r0 short long; case: (lerP (sq z) (radius ^+ 2)) => zr.
  by rewrite (eq_sq (short zr)).
by apply: clipped_norm (long zr) => //; apply: le_lt_trans zr; apply: sqr_ge0.
Qed.

(** Rounding to the nearest whole number: a whole number times at most one gets no larger. *)
Theorem round_shrinks (n t : int) (x : F) :
  `|x| <= 1 -> `|t%:~R - n%:~R * x| <= 2%:R^-1 -> `|t| <= `|n|.
Proof.
move=> x1 near; rewrite leNgt; apply/negP => nt.
have : `|t|%:~R - `|n|%:~R <= 2%:R^-1 :> F.
  apply: le_trans near; apply: le_trans (ler_sub_dist _ _); rewrite intr_norm ler_add2l ler_opp2.
  by rewrite normrM intr_norm ler_pimulr.
apply/negP; rewrite -ltNge; apply: (@lt_le_trans _ _ 1); first by rewrite invf_lt1 ?ltr0n // ltr1n.
by rewrite -rmorphB /= ler1z; move: nt; lia.
Qed.

End Clip.

Section Partial.

Variable R : realDomainType.
Variable I : finType.

(** Every partial sum of an inner product is bounded by the norms: so it is exact in floats, in any
    order, where these are at most 2^52 or so. *)
Theorem partial_sums (A B : R) (u v : I -> R) (P : pred I) :
  0 <= A -> 0 <= B -> sq u <= A ^+ 2 -> sq v <= B ^+ 2 -> \sum_(i | P i) `|u i * v i| <= A * B.
Proof.
move=> A0 B0 uA vB; pose u' i := if P i then `|u i| else 0; pose v' i := `|v i|.
have -> : \sum_(i | P i) `|u i * v i| = dot u' v'.
  rewrite big_mkcond; apply: eq_bigr => i _; rewrite /u' /v'.
  by case: ifP => _; rewrite ?mul0r // normrM.
apply: le_trans (ler_norm _) (dot_bound A0 B0 _ _); [apply: le_trans uA | apply: le_trans vB].
  by apply: sq_shrinks => i; rewrite /u'; case: ifP => _; rewrite ?normr0 ?normr_id.
by apply: sq_shrinks => i; rewrite normr_id.
Qed.

End Partial.

Local Close Scope ring_scope.
Local Open Scope Z_scope.

(** The margins of the code: 1 - 2^-48 for rows, 1 - 2^-40 for features, with roundings of
    2^-53. *)
Theorem clip_margin : 8 * 2 ^ clip_bits <= 2 ^ float_bits.
Proof. by vm_compute. Qed.

Theorem shrink_margin : 8 * 2 ^ shrink_bits <= 2 ^ float_bits.
Proof. by vm_compute. Qed.

(** An order in which terms are added up, by any number of threads. *)
Inductive order := Term (x : Z) | Plus (one other : order).

Fixpoint exact (o : order) : Z :=
  match o with Term x => x | Plus l r => exact l + exact r end.

(** The same with a rounding `fl` after each operation. *)
Fixpoint computed (fl : Z -> Z) (o : order) : Z :=
  match o with Term x => fl x | Plus l r => fl (computed fl l + computed fl r) end.

Fixpoint count (o : order) : Z :=
  match o with Term _ => 1 | Plus l r => count l + count r end.

Fixpoint within (bound : Z) (o : order) : Prop :=
  match o with Term x => Z.abs x <= bound | Plus l r => within bound l /\ within bound r end.

Lemma exact_bound bound o : within bound o -> Z.abs (exact o) <= count o * bound.
Proof.
elim: o => [x|l IHl r IHr]; first by rewrite /within /exact /count Z.mul_1_l.
case=> /IHl el /IHr er; change (Z.abs (exact l + exact r) <= (count l + count r) * bound).
by rewrite Z.mul_add_distr_r; have := Z.abs_triangle (exact l) (exact r); lia.
Qed.

Lemma count_pos o : 0 < count o.
Proof. by elim: o => //= l ? r ?; lia. Qed.

(** Where all numbers up to 2^53 are exact, and count·bound is no larger, sums are exact in any
    order. *)
Theorem exact_sums fl bound o :
  (forall k, Z.abs k <= exact_float -> fl k = k) -> 0 <= bound ->
  within bound o -> count o * bound <= exact_float -> computed fl o = exact o.
Proof.
move=> flk b0; elim: o => [x|l IHl r IHr].
  rewrite /within /count Z.mul_1_l => xb cb; apply: flk; exact: Z.le_trans xb cb.
case=> lb rb; change (count (Plus l r)) with (count l + count r) => cb.
have cl := count_pos l; have cr := count_pos r.
have er := exact_bound rb; have el := exact_bound lb.
have pl : 0 <= count l * bound by apply: Z.mul_nonneg_nonneg; lia.
have pr : 0 <= count r * bound by apply: Z.mul_nonneg_nonneg; lia.
rewrite Z.mul_add_distr_r in cb.
change (fl (computed fl l + computed fl r) = exact l + exact r).
rewrite IHl ?IHr //; try lia.
by apply: flk; have := Z.abs_triangle (exact l) (exact r); lia.
Qed.

(** Totals of so many rows fit int64, with room for as much again. *)
Theorem sums_fit bound o :
  within bound o -> count o * bound <= largest_sum -> 2 * Z.abs (exact o) <= int64_end.
Proof. by move=> /exact_bound eb cb; move: eb cb; rewrite /largest_sum /int64_end; lia. Qed.

(** Squares of so many coordinates fit, too: `Lattice.clip_rows` measures every row exactly. *)
Theorem squares_fit bound o :
  within bound o -> count o * bound <= largest_squared_norm -> Z.abs (exact o) < int64_end.
Proof. by move=> /exact_bound eb cb; move: eb cb; rewrite /largest_squared_norm /int64_end; lia. Qed.
