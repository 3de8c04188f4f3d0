(** Whole numbers in int64: what `discreet.noise.correlated` and `discreet.sums` do in steps,
    with shifts, masks and remainders, is the rounding down that the proofs speak of, and no
    intermediate result leaves int64. *)

From Coq Require Import ZArith Lia.
From Discreet Require Import Constants.

Local Open Scope Z_scope.

(** floor(a·B/2^30) from high and low bits: `Strategy.follow` and `Reading.decayed`. *)
Theorem split_product (B a : Z) :
  Z.shiftr (Z.land B (decay_unit - 1) * a) 30 + Z.shiftr B 30 * a = a * B / decay_unit.
Proof.
replace (decay_unit - 1) with (Z.ones 30) by reflexivity.
rewrite Z.land_ones by lia.
rewrite !Z.shiftr_div_pow2 by lia.
change (2 ^ 30) with decay_unit.
assert (0 < decay_unit) by reflexivity.
rewrite (Z.div_mod B decay_unit) at 3 by lia.
replace (a * (decay_unit * (B / decay_unit) + B mod decay_unit))
  with (B mod decay_unit * a + B / decay_unit * a * decay_unit) by ring.
rewrite Z.div_add by lia.
reflexivity.
Qed.

(** Nothing on the way leaves int64, as long as buffers stay below 2^62. *)
Theorem split_product_fits (B a : Z) :
  Z.abs B <= largest_buffer -> 0 <= a <= decay_unit ->
  0 <= Z.land B (decay_unit - 1) * a < int64_end /\
  Z.abs (Z.shiftr B 30 * a) < int64_end /\
  Z.abs (a * B / decay_unit) <= largest_buffer.
Proof.
intros fits range.
replace (decay_unit - 1) with (Z.ones 30) by reflexivity.
rewrite Z.land_ones by lia.
rewrite Z.shiftr_div_pow2 by lia.
assert (M := Z.mod_pos_bound B (2 ^ 30) eq_refl).
assert (E := Z.div_mod B (2 ^ 30) ltac:(discriminate)).
unfold largest_buffer, decay_unit, int64_end in *.
repeat split.
- nia.
- apply Z.le_lt_trans with (2 ^ 30 * 2 ^ 30); [apply Z.mul_le_mono_nonneg; lia | reflexivity].
- rewrite Z.abs_mul.
  apply Z.le_lt_trans with (2 ^ 32 * 2 ^ 30); [|reflexivity].
  apply Z.mul_le_mono_nonneg; lia.
- apply Z.abs_le; split.
  + apply Z.div_le_lower_bound; nia.
  + apply Z.div_le_upper_bound; nia.
Qed.

(** c = floor((Σ B + 2^15)/2^16): `Strategy.follow` adds half a unit and shifts. *)
Theorem round_half_up (total : Z) :
  Z.shiftr (total + half_unit) 16 = (total + half_unit) / weight_unit.
Proof. rewrite Z.shiftr_div_pow2 by lia. reflexivity. Qed.

(** floor(c·k/n) in two steps: `discreet.sums.cells._add_capped`, with k = q·n + r. *)
Theorem cells_two_steps (c k n : Z) :
  0 < n -> c * (k / n) + c * (k mod n) / n = c * k / n.
Proof.
intros n0.
rewrite (Z.div_mod k n) at 3 by lia.
replace (c * (n * (k / n) + k mod n)) with (c * (k mod n) + c * (k / n) * n) by ring.
rewrite Z.div_add by lia.
lia.
Qed.

Theorem cells_two_steps_fit (c k n : Z) :
  0 < n -> 0 <= c <= n -> 0 <= c * (k mod n) < n * n.
Proof. intros n0 cn. assert (M := Z.mod_pos_bound k n n0). nia. Qed.

(** All rows of a short record are multiplied exactly at once: `Accumulator._share` takes no fewer. *)
Theorem short_records_exact (rows : Z) :
  0 <= rows -> rows * rows <= most_pairs ->
  rows * (feature_radius * (4 * 2 ^ finest_resolution)) <= exact_float /\
  rows * (feature_radius * feature_radius) <= exact_float.
Proof.
unfold most_pairs, feature_radius, finest_resolution, exact_float.
intros r0 pairs.
assert (rows <= 2 ^ 7) by nia.
split; nia.
Qed.

(** The inner products of features times limbs of those of values, added up over all pairs of a
    record: `records._squared_norms`. *)
Theorem limbs_fit (pairs inner limb : Z) :
  0 <= pairs <= most_pairs -> Z.abs inner <= feature_radius * feature_radius ->
  0 <= limb < 2 ^ limb_bits -> pairs * Z.abs (inner * limb) < int64_end.
Proof.
unfold most_pairs, feature_radius, limb_bits, int64_end.
intros p i l.
rewrite Z.abs_mul, (Z.abs_eq limb) by lia.
assert (Z.abs inner * limb <= 2 ^ 32 * 2 ^ 16) by (apply Z.mul_le_mono_nonneg; lia).
apply Z.le_lt_trans with (2 ^ 14 * (2 ^ 32 * 2 ^ 16)); [|reflexivity].
apply Z.mul_le_mono_nonneg; lia.
Qed.
