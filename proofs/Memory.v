(** Sums of outer products: how long one row's contribution is, and how far a row that is added,
    removed or replaced moves the sums of one head, and of all heads together.

    Over any ordered ring (`Z`, the integers that the code adds, is one); what divides by a
    sensitivity is over any ordered field. Norms are squared. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Discreet Require Import Vectors.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory Num.Def.
Local Open Scope ring_scope.

Section OneHead.

Variable R : realDomainType.

(** I numbers of w, J features. A row's contribution is made of w and a. *)
Variables I J : finType.

Definition row := ((I -> R) * (J -> R))%type.
Definition contribution (x : row) : I * J -> R := outer x.1 x.2.

(** What is bounded on the lattice: ‖w‖² by `weight`, which is V² + T², ‖a‖² by `features`, which
    is R². *)
Variables features weight : R.
Definition clipped (x : row) := sq x.1 <= weight /\ sq x.2 <= features.

(** ‖w ⊗ a‖² ≤ C² = R²·(V² + T²). *)
Theorem contribution_norm x : clipped x -> sq (contribution x) <= features * weight.
Proof.
by case=> xw xa; rewrite sq_outer mulrC; apply: ler_pmul => //; apply: sq_ge0.
Qed.

(** The sums of a data set: one head's state before its noise. *)
Definition state (D : seq row) : I * J -> R := total (map contribution D).

(** One row more, anywhere; or one other row. *)
Definition adds (D D' : seq row) x := exists b a, D = b ++ x :: a /\ D' = b ++ a.
Definition replaces (D D' : seq row) x y :=
  exists b a, D = b ++ x :: a /\ D' = b ++ y :: a.

(** Added or removed: the sums move by at most C. *)
Theorem add_distance D D' x :
  adds D D' x -> clipped x -> sq (sub (state D) (state D')) <= features * weight.
Proof.
case=> b [a [-> ->]] /contribution_norm xC.
by rewrite /state !map_cat map_cons (@one_more_distance _ _ _ _ (contribution x)).
Qed.

Theorem remove_distance D D' x :
  adds D' D x -> clipped x -> sq (sub (state D) (state D')) <= features * weight.
Proof. by rewrite sq_subC; apply: add_distance. Qed.

Lemma replaced D D' x y :
  replaces D D' x y ->
  sq (sub (state D) (state D')) = sq (sub (contribution x) (contribution y)).
Proof.
case=> b [a [-> ->]]; rewrite /state !map_cat !map_cons.
exact/one_other_distance/OneOther.
Qed.

(** Replaced: by at most 2·C, whatever the two rows are (weights below one included). *)
Theorem replace_distance D D' x y :
  replaces D D' x y -> clipped x -> clipped y ->
  sq (sub (state D) (state D')) <= 2%:R ^+ 2 * (features * weight).
Proof.
move=> /replaced -> xC yC; apply: le_trans (sq_sub2 _ _) _.
rewrite expr2 -mulrA ler_pmul2l ?ltr0n // mulrDl mul1r.
by apply: ler_add; apply: contribution_norm.
Qed.

(** What a product of two bounded numbers is at least: its least value is at a corner. *)
Lemma corner (a b c d x y : R) :
  a <= x <= b -> c <= y <= d ->
  - (x * y) <= Num.max (Num.max (- (a * c)) (- (a * d))) (Num.max (- (b * c)) (- (b * d))).
Proof.
move=> /andP[ax xb] /andP[cy yd].
have E z : - (z * y) <= Num.max (- (z * c)) (- (z * d)).
  rewrite le_maxr !ler_opp2; case: (lerP 0 z) => z0.
    by rewrite ler_wpmul2l.
  by rewrite (ler_wnmul2l (ltW z0) yd) orbT.
rewrite le_maxr; case: (lerP 0 y) => y0.
  by rewrite (le_trans _ (E a)) // ler_opp2 ler_wpmul2r.
by rewrite (le_trans _ (E b)) ?orbT // ler_opp2 ler_wnmul2r // ltW.
Qed.

(** The square of `RowLayout.row_sensitivity` under `replace`, as the code computes it: ⟨w, w'⟩
    lies in [least, most] and ⟨a, a'⟩ in [inner, R²]. *)
Definition replace_squared (least most inner : R) : R :=
  2%:R * features * most
  + 2%:R * Num.max (Num.max (- (least * features)) (- (least * inner)))
               (Num.max (- (most * features)) (- (most * inner))).

Theorem replace_distance_sharp (least most inner : R) D D' x y :
  replaces D D' x y -> clipped x -> clipped y -> weight <= most ->
  least <= dot x.1 y.1 <= most -> inner <= dot x.2 y.2 ->
  sq (sub (state D) (state D')) <= replace_squared least most inner.
Proof.
move=> /replaced -> xC yC wm wr ir; rewrite sq_sub [dot _ _]dot_outer.
have f0 : 0 <= features by apply: le_trans (sq_ge0 _) xC.2.
have [xn yn] : sq (contribution x) <= features * most /\ sq (contribution y) <= features * most.
  by split; apply: le_trans (contribution_norm _) _ => //; apply: ler_wpmul2l.
have ib : inner <= dot x.2 y.2 <= features.
  rewrite ir /=; apply: le_trans (ler_norm _) _.
  by apply: dot_bound_sq; [case: xC | case: yC].
have := corner wr ib; rewrite /replace_squared.
rewrite [Num.max (- (least * features)) _]maxC [Num.max (- (most * features)) _]maxC.
set m := Num.max _ _ => cb.
rewrite (_ : _ + 2%:R * m = features * most + features * most + m *+ 2); last ring.
apply: ler_add; first exact: ler_add.
by rewrite -mulNrn ler_muln2r.
Qed.

End OneHead.

Section Values.

Variable R : realDomainType.
Variable I : finType.

(** w = [v; t]: a value and the denominator's column. *)
Definition with_tau (v : I -> R) (t : R) : option I -> R := fun o => oapp v t o.

Lemma dot_with_tau (v v' : I -> R) t t' :
  dot (with_tau v t) (with_tau v' t') = dot v v' + t * t'.
Proof.
rewrite /dot (bigD1 None) //= addrC; congr (_ + _).
rewrite (reindex_omap Some id) /=; first by apply: eq_bigl => i; rewrite eqxx.
by case.
Qed.

(** ‖w‖² ≤ V² + T², also for weights below one: a number of magnitude at most T in place of T. *)
Theorem value_norm (V2 T : R) v t :
  sq v <= V2 -> `|t| <= T -> sq (with_tau v t) <= V2 + T ^+ 2.
Proof.
move=> vV tT; rewrite /sq dot_with_tau; apply: ler_add => //.
rewrite -expr2 -(real_normK (num_real t)).
by rewrite ler_pexpn2r ?nnegrE // (le_trans (normr_ge0 t)).
Qed.

(** All weights one: ⟨w, w'⟩ lies in [T² - V², T² + V²] (`ValueLayout.inner_range`). *)
Theorem inner_range (V2 T : R) v v' :
  sq v <= V2 -> sq v' <= V2 ->
  T ^+ 2 - V2 <= dot (with_tau v T) (with_tau v' T) <= T ^+ 2 + V2.
Proof.
move=> vV vV'; rewrite dot_with_tau -expr2.
have := dot_bound_sq vV vV'; rewrite ler_norml => /andP[lo hi].
by rewrite addrC ler_add2r lo /= addrC ler_add2l.
Qed.

(** Memory, 5, as it stands there: with ⟨a, a'⟩ ≥ -L, 0 ≤ L ≤ R², the square is at most
    2R²(V² + T²) + 2·max(R²(V² - T²), L·(V² + T²)). *)
Theorem replace_squared_is (features V2 T L : R) :
  0 <= features -> 0 <= V2 -> 0 <= L ->
  replace_squared features (T ^+ 2 - V2) (T ^+ 2 + V2) (- L) =
  2%:R * features * (V2 + T ^+ 2)
  + 2%:R * Num.max (features * (V2 - T ^+ 2)) (L * (V2 + T ^+ 2)).
Proof.
move=> f0 V0 L0; rewrite /replace_squared [T ^+ 2 + V2]addrC; congr (_ + _ * _).
have T0 : 0 <= T ^+ 2 by apply: sqr_ge0.
have -> : - ((T ^+ 2 - V2) * features) = features * (V2 - T ^+ 2) by ring.
have -> : - ((T ^+ 2 - V2) * - L) = L * (T ^+ 2 - V2) by ring.
have -> : - ((V2 + T ^+ 2) * features) = - (features * (V2 + T ^+ 2)) by ring.
have -> : - ((V2 + T ^+ 2) * - L) = L * (V2 + T ^+ 2) by ring.
set p := L * (V2 + _); set q := features * (V2 - _).
have qp : L * (T ^+ 2 - V2) <= p.
  by rewrite ler_wpmul2l // addrC ler_add2r (le_trans _ V0) // oppr_le0.
have np : - (features * (V2 + T ^+ 2)) <= p.
  by rewrite (@le_trans _ _ 0) ?oppr_le0 ?mulr_ge0 ?addr_ge0.
by rewrite (max_r np) -maxA (max_r qp).
Qed.

(** L = R² gives (2·C)², the bound of `replace_distance`. *)
Theorem replace_squared_worst (features V2 T : R) :
  0 <= features -> 0 <= V2 ->
  replace_squared features (T ^+ 2 - V2) (T ^+ 2 + V2) (- features) =
  2%:R ^+ 2 * (features * (V2 + T ^+ 2)).
Proof.
move=> f0 V0; rewrite replace_squared_is // max_r; first ring.
by rewrite ler_wpmul2l // ler_add2l (le_trans _ (sqr_ge0 T)) // oppr_le0 sqr_ge0.
Qed.

End Values.

Section Heads.

Variable F : realFieldType.

(** Heads of all layers; each has numbers of its own. *)
Variable H : finType.
Variable I : H -> finType.

(** The squared distance in units of each head's s is at most the number of heads. *)
Theorem heads_distance (moved : forall h, I h -> F) (s : H -> F) :
  (forall h, 0 < s h) -> (forall h, sq (moved h) <= s h ^+ 2) ->
  \sum_h sq (moved h) / s h ^+ 2 <= #|H|%:R.
Proof.
move=> s0 ms; rewrite -sum1_card natr_sum; apply: ler_sum => h _.
by rewrite ler_pdivr_mulr ?exprn_gt0 // mul1r.
Qed.

(** So, with σ_h = μ·s_h, all heads are one Gaussian pair at squared distance H/μ². *)
Theorem heads_noise (moved : forall h, I h -> F) (s : H -> F) (mu : F) :
  0 < mu -> (forall h, 0 < s h) -> (forall h, sq (moved h) <= s h ^+ 2) ->
  \sum_h sq (moved h) / (mu * s h) ^+ 2 <= #|H|%:R / mu ^+ 2.
Proof.
move=> m0 s0 ms; rewrite ler_pdivl_mulr ?exprn_gt0 //.
apply: le_trans (heads_distance s0 ms); rewrite mulr_suml; apply: ler_sum => h _.
suff -> : sq (moved h) / (mu * s h) ^+ 2 * mu ^+ 2 = sq (moved h) / s h ^+ 2 by [].
by field; rewrite !gt_eqF.
Qed.

End Heads.
