(** From sums to promises: memories and streams as programs that release noisy integers. Puts
    distances (`Memory`, `Streams`) and composition (`Composition`) together, for every
    `gaussian_dp`. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Discreet Require Import Constants Vectors Memory Streams Composition.
From mathcomp.zify Require Import ssrZ.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory Num.Def.
Local Open Scope ring_scope.

Section Memories.

Variable F : realFieldType.
Variable G : gaussian_dp F.

(** Heads of all layers; each has numbers of its own, a sensitivity s, and noise μ·s. *)
Variable H : finType.
Variables I J : H -> finType.
Variable s : H -> F.
Variable mu : F.
Hypothesis mu_gt0 : 0 < mu.
Hypothesis s_gt0 : forall h, 0 < s h.

Notation numbers := {h : H & (I h * J h)%type}.

Definition side_by_side (x : forall h, I h * J h -> int) : numbers -> int :=
  fun p => x (tag p) (tagged p).

Definition release (x x' : forall h, I h * J h -> int) :=
  noisy G (side_by_side x) (side_by_side x') (fun p => mu * s (tag p)).

(** If no head moves by more than its sensitivity, the release is one Gaussian mechanism with
    sensitivity √H and scale μ. *)
Theorem heads_private (x x' : forall h, I h * J h -> int) :
  (forall h, (sq (sub (x h) (x' h)))%:~R <= s h ^+ 2) ->
  is_gaussian (release x x') (#|H|%:R / mu ^+ 2).
Proof.
move=> moves; apply: noisy_gauss => [p|]; first exact: mulr_gt0.
pose d h : I h * J h -> F := fun k => (x h k - x' h k)%:~R.
apply: le_trans (@heads_noise F H (fun h => [finType of I h * J h]) d s mu mu_gt0 s_gt0 _).
  rewrite -(sig_big_dep xpredT (fun _ => xpredT)
    (fun h (k : I h * J h) => ((x h k - x' h k)%:~R / (mu * s h)) ^+ 2)) /=.
  apply: ler_sum => h _; rewrite /sq /dot mulr_suml; apply: ler_sum => k _.
  by rewrite expr_div_n -expr2.
move=> h; apply: le_trans (moves h); rewrite /sq /dot rmorph_sum le_eqVlt; apply/orP; left; apply/eqP.
by apply: eq_bigr => k _; rewrite rmorphM.
Qed.

(** The data of each head: rows of w and a, clipped on the lattice; and its exact sums. *)
Variables features weight : H -> int.
Definition head_row h := ((I h -> int) * (J h -> int))%type.
Definition data := forall h, seq (head_row h).
Definition sums (D : data) h : I h * J h -> int := state (D h).

(** A memory, when one row is added, at any place of every head. *)
Theorem memory_added (D D' : data) (x : forall h, head_row h) :
  (forall h, adds (D h) (D' h) (x h)) ->
  (forall h, clipped (features h) (weight h) (x h)) ->
  (forall h, (features h * weight h)%:~R <= s h ^+ 2) ->
  is_gaussian (release (sums D) (sums D')) (#|H|%:R / mu ^+ 2).
Proof.
move=> ad cl fw; apply: heads_private => h; apply: le_trans (fw h); rewrite ler_int.
exact: add_distance (ad h) (cl h).
Qed.

Theorem memory_removed (D D' : data) (x : forall h, head_row h) :
  (forall h, adds (D' h) (D h) (x h)) ->
  (forall h, clipped (features h) (weight h) (x h)) ->
  (forall h, (features h * weight h)%:~R <= s h ^+ 2) ->
  is_gaussian (release (sums D) (sums D')) (#|H|%:R / mu ^+ 2).
Proof.
move=> ad cl fw; apply: heads_private => h; apply: le_trans (fw h); rewrite ler_int.
exact: remove_distance (ad h) (cl h).
Qed.

(** And replaced: ⟨w, w'⟩ lies in [least, most] in each head, and ⟨a, a'⟩ is at least `inner`. *)
Theorem memory_replaced (D D' : data) (x x' : forall h, head_row h) (least most inner : H -> int) :
  (forall h, replaces (D h) (D' h) (x h) (x' h)) ->
  (forall h, clipped (features h) (weight h) (x h)) ->
  (forall h, clipped (features h) (weight h) (x' h)) ->
  (forall h, weight h <= most h) ->
  (forall h, least h <= dot (x h).1 (x' h).1 <= most h) ->
  (forall h, inner h <= dot (x h).2 (x' h).2) ->
  (forall h, (replace_squared (features h) (least h) (most h) (inner h))%:~R <= s h ^+ 2) ->
  is_gaussian (release (sums D) (sums D')) (#|H|%:R / mu ^+ 2).
Proof.
move=> re cl cl' wm wr ir fw; apply: heads_private => h; apply: le_trans (fw h); rewrite ler_int.
exact: replace_distance_sharp (re h) (cl h) (cl' h) (wm h) (wr h) (ir h).
Qed.

End Memories.

Section Streams.

Variable F : realFieldType.
Variable G : gaussian_dp F.

Variable J : finType.
Variables a W : J -> int.
Variables du wu half : int.

(** The numbers of all parts, each with its weight, and with noise of scale σ over that weight. *)
Variable X : finType.
Variable weight : X -> F.
Variable sigma : F.
Hypothesis sigma_gt0 : 0 < sigma.
Hypothesis weight_gt0 : forall z, 0 < weight z.

(** A history: what was released so far. The exact sums of the next step are a function of it,
    for each of two neighbours: rows may depend on what was released before. *)
Notation history := (seq (X -> int)).
Variables d d' : history -> X -> int.

(** What a step adds fresh noise to, after a history. *)
Definition next_sums (e : history -> X -> int) (past : history) (z : X) : int :=
  before_noise a W du wu half (fun t => nth (fun=> 0) past t z) (fun t => e (take t past) z)
    (size past).

Definition next_cost (past : history) : F :=
  \sum_z ((next_sums d past z - next_sums d' past z)%:~R / (sigma / weight z)) ^+ 2.

(** The stream as a program: n more steps. *)
Fixpoint stream (n : nat) (past : history) : program G :=
  if n is m.+1 then
    Release (noisy G (next_sums d past) (next_sums d' past) (fun z => sigma / weight z))
            (next_cost past) (fun y => stream m (rcons past y))
  else Stop G.

Lemma stream_honest n past : honest (stream n past).
Proof.
elim: n past => [|n IH] past //=; split; first by apply: sumr_ge0 => z _; apply: sqr_ge0.
split=> // ; apply: noisy_gauss => // z; exact: divr_gt0.
Qed.

(** Whatever was spent is the sum of the costs along some history. *)
Lemma stream_spent n past v : spent (stream n past) v ->
  exists2 ys : history, (size ys <= n)%N
    & v = \sum_(size past <= t < size past + size ys) next_cost (take t (past ++ ys)).
Proof.
elim: n past v => [|n IH] past v /=.
  by case=> // ->; exists [::] => //; rewrite addn0 big_geq.
case=> [->|[->|[y [v' [/IH [ys sy ->] ->]]]]].
- by exists [::] => //; rewrite addn0 big_geq.
- by exists [:: fun=> 0] => //; rewrite addn1 big_nat1 take_size_cat.
exists (y :: ys) => //=; rewrite addnS [RHS]big_ltn ?ltnS ?leq_addr // take_size_cat //.
by rewrite size_rcons cat_rcons addSn.
Qed.

(** Costs are what `Streams` bounds: how far neighbours are apart in all fresh draws. Steps that
    have not come yet have no rows. *)
Definition released (ys : history) (t : nat) (z : X) : int := nth (fun=> 0) ys t z.
Definition exact_sums (e : history -> X -> int) (ys : history) (t : nat) (z : X) : int :=
  if (t < size ys)%N then e (take t ys) z else 0.

Lemma next_sums_take e ys t z : (t < size ys)%N ->
  next_sums e (take t ys) z =
  before_noise a W du wu half (fun t => released ys t z) (fun t => exact_sums e ys t z) t.
Proof.
move=> ts; have tl := ltnW ts; rewrite /next_sums size_takel // /before_noise /exact_sums ts.
rewrite take_take //; congr (_ - _); rewrite /taken (eq_bigr (fun j =>
  buffers a W du (fun u => released ys u z
    - (if (u < size ys)%N then e (take u ys) z else 0)) t j)) // => j _.
apply: eq_buffers => u ut; rewrite /released nth_take // take_take ?(ltnW ut) //.
by rewrite (ltn_trans ut ts).
Qed.

Lemma costs_moved (ys : history) :
  \sum_(0 <= t < size ys) next_cost (take t ys)
  = sq (all_moved a W du wu half weight (T := size ys)
          (released ys) (exact_sums d ys) (exact_sums d' ys)) / sigma ^+ 2.
Proof.
rewrite big_mkord.
transitivity (\sum_(t < size ys) \sum_z
    (weight z * (moved a W du wu half (released ys ^~ z) (exact_sums d ys ^~ z)
                   (exact_sums d' ys ^~ z) t)%:~R) ^+ 2 / sigma ^+ 2).
  apply: eq_bigr => t _; apply: eq_bigr => z _.
  rewrite !next_sums_take //.
  by rewrite invf_div mulrA expr_div_n [weight z * _]mulrC.
rewrite pair_big /= /sq /dot mulr_suml; apply: eq_bigr => p _.
by rewrite /all_moved expr2.
Qed.

(** All that a stream of T steps releases, with every answer: if on no history neighbours are
    further apart in all fresh draws than B, it is one Gaussian mechanism with μ = B/σ. *)
Theorem stream_private (T : nat) (B2 : F) :
  (forall ys : history, (size ys <= T)%N ->
    sq (all_moved a W du wu half weight (T := size ys)
          (released ys) (exact_sums d ys) (exact_sums d' ys)) <= B2) ->
  is_gaussian (run (stream T [::])) (B2 / sigma ^+ 2).
Proof.
move=> limit; apply: adaptive_composition; first exact: stream_honest.
move=> v /stream_spent [ys sy ->]; rewrite add0n costs_moved.
by apply: ler_wpmul2r (limit ys sy); rewrite invr_ge0 exprn_ge0 // ltW.
Qed.

End Streams.

Section Code.

(** The same with the code's numbers (`Streams.stream_of_code`). *)
Variables du wu half steps : int.
Hypothesis code_du : Z_of_int du = decay_unit.
Hypothesis code_wu : Z_of_int wu = weight_unit.
Hypothesis code_half : Z_of_int half = half_unit.
Hypothesis code_steps : Z_of_int steps = most_steps.

Variable F : realFieldType.
Variable G : gaussian_dp F.
Variables J X : finType.
Variables a W : J -> int.
Variable weight : X -> F.
Variable sigma : F.

(** Streams: a unit in at most k steps, at least b apart, whichever these are on a history, that
    adds at most A (squared, in units of the noise) in each. *)
Theorem stream_of_code_private (T k b : nat) (d d' : seq (X -> int) -> X -> int) (S eta A : F) :
  0 < sigma -> (forall z, 0 < weight z) ->
  (forall j, 0 < a j < du) -> (forall j, 0 < W j) -> \sum_j W j <= wu -> T%:Z <= steps ->
  (0 < b)%N -> 0 <= S -> 0 <= eta ->
  A * participation_squared (share W wu F) (decay a du F) k b <= S ^+ 2 ->
  rho a du wu F ^+ 2 * steps%:~R * (\sum_z weight z ^+ 2) <= eta ^+ 2 ->
  (forall ys, (size ys <= T)%N ->
    let changes := change weight (exact_sums d ys) (exact_sums d' ys) in
    (forall t, sq (changes t) <= A) /\
    exists n at_, [/\ (n <= k)%N, spaced n b at_ & only_in n at_ changes]) ->
  is_gaussian (run (stream G a W du wu half weight sigma d d' T [::]))
              ((S + eta) ^+ 2 / sigma ^+ 2).
Proof.
move=> s0 w0 ad W0 Ws Ts b0 S0 e0 AS eb unit; apply: stream_private => // ys sy.
have [cA [n [at_ [nk sp only]]]] := unit ys sy.
apply: (stream_of_code code_du code_wu code_half code_steps (released ys) ad W0 Ws _ nk b0 sp only cA
          S0 e0 AS eb).
by apply: le_trans Ts; rewrite lez_nat.
Qed.

End Code.
