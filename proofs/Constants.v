(** The numbers that the code and the proofs share. `tests/meta/test_proofs.py` reads the
    definitions below and compares each with the Python constant of its comment. *)

From Coq Require Import ZArith.
Local Open Scope Z_scope.

(** discreet.features.base.FEATURE_RADIUS: no row's features are longer. *)
Definition feature_radius : Z := 2 ^ 16.

(** discreet.features.base.SHRINK is 1 - 2^-40. *)
Definition shrink_bits : Z := 40.

(** discreet.noise.lattice._shrink_long_rows multiplies by 1 - 2^-48. *)
Definition clip_bits : Z := 48.

(** float64: a correctly rounded result is off by at most 2^-53 of itself. *)
Definition float_bits : Z := 53.

(** discreet.noise.lattice._EXACT_FLOAT and discreet.sums.layout._EXACT_FLOAT. *)
Definition exact_float : Z := 2 ^ 53.

(** discreet.noise.lattice._LARGEST_SQUARED_NORM. *)
Definition largest_squared_norm : Z := 2 ^ 62.

(** discreet.sums.layout._LARGEST_SUM and discreet.sums.cells._LARGEST_SUM. *)
Definition largest_sum : Z := 2 ^ 62.

(** discreet.sums.settings._FINEST_RESOLUTION: values are at most 2 to this many units long, and
    τ at most four times that. *)
Definition finest_resolution : Z := 22.

(** discreet.sums.records._MOST_PAIRS: a short record has at most so many pairs of rows, over all
    heads; and _LIMB_BITS: so many bits of a number are multiplied at a time. *)
Definition most_pairs : Z := 2 ^ 14.
Definition limb_bits : Z := 16.

(** int64 ends before this. *)
Definition int64_end : Z := 2 ^ 63.

(** discreet.noise.correlated._DECAY_UNIT and _WEIGHT_UNIT: what decays and weights are counted in;
    and what is added before a sum of buffers is rounded down. *)
Definition decay_unit : Z := 2 ^ 30.
Definition weight_unit : Z := 2 ^ 16.
Definition half_unit : Z := 2 ^ 15.

(** discreet.noise.correlated.MOST_STEPS. *)
Definition most_steps : Z := 2 ^ 22.

(** discreet.noise.correlated._LARGEST: buffers stay below. *)
Definition largest_buffer : Z := 2 ^ 62.
