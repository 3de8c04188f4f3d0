(** Noise that is correlated over time, on integers (`discreet.noise.correlated`): how far a unit
    moves the fresh draws behind the releases of a stream.

    The recursion is the code's, on integers. Bounds are over any ordered field. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From mathcomp.zify Require Import ssrZ zify.
From Discreet Require Import Constants Vectors Records.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory Num.Def.
Local Open Scope ring_scope.

Section Coefficients.

Variable F : realFieldType.
Variable J : finType.
Variables share decay : J -> F.

(** m_0 = 1, m_k = Σ_j s_j·λ_j^(k-1). *)
Definition coef (k : nat) : F := if k is k'.+1 then \sum_j share j * decay j ^+ k' else 1.

(** G(d) = Σ_n m_n·m_(n+d) over infinitely many steps, as `Strategy.correlation` has it. *)
Definition correlation (d : nat) : F :=
  coef d + \sum_i \sum_j share i * share j * decay j ^+ d / (1 - decay i * decay j).

Hypothesis share_ge0 : forall j, 0 <= share j.
Hypothesis share_le1 : \sum_j share j <= 1.
Hypothesis decay_ge0 : forall j, 0 <= decay j.
Hypothesis decay_lt1 : forall j, decay j < 1.

Lemma coef_ge0 k : 0 <= coef k.
Proof.
case: k => [|k] /=; first exact: ler01.
by apply: sumr_ge0 => j _; rewrite mulr_ge0 ?exprn_ge0.
Qed.

(** m falls, from the first on. *)
Lemma coef_falls k : coef k.+1 <= coef k.
Proof.
case: k => [|k] /=; first by under eq_bigr => j _ do rewrite mulr1.
apply: ler_sum => j _; apply: ler_wpmul2l => //.
by rewrite exprS ler_pimull ?exprn_ge0 // ltW.
Qed.

Let gap i j : 0 < 1 - decay i * decay j.
Proof. by rewrite subr_gt0 (le_lt_trans _ (decay_lt1 j)) // ler_pimull // ltW. Qed.

Lemma correlation_ge0 d : 0 <= correlation d.
Proof.
apply: addr_ge0; first exact: coef_ge0.
apply: sumr_ge0 => i _; apply: sumr_ge0 => j _.
by rewrite mulr_ge0 ?mulr_ge0 ?exprn_ge0 // invr_ge0 ltW.
Qed.

(** G falls with d. *)
Lemma correlation_step d : correlation d.+1 <= correlation d.
Proof.
apply: ler_add; first exact: coef_falls.
apply: ler_sum => i _; apply: ler_sum => j _.
rewrite ler_wpmul2r ?invr_ge0 ?(ltW (gap i j)) // ler_wpmul2l ?mulr_ge0 //.
by rewrite exprS ler_pimull ?exprn_ge0 // ltW.
Qed.

Theorem correlation_falls d e : (d <= e)%N -> correlation e <= correlation d.
Proof.
elim: e => [|e IH]; first by rewrite leqn0 => /eqP ->.
rewrite leq_eqVlt => /orP[/eqP -> //|de].
exact: le_trans (correlation_step e) (IH de).
Qed.

Lemma geometric (q : F) n : 0 <= q -> q < 1 -> \sum_(k < n) q ^+ k <= (1 - q)^-1.
Proof.
move=> q0 q1; rewrite -[_^-1]mul1r ler_pdivl_mulr ?subr_gt0 //.
have -> : (\sum_(k < n) q ^+ k) * (1 - q) = 1 - q ^+ n.
  by rewrite mulrC -[1 - q]opprB mulNr -subrX1 opprB.
by rewrite ler_subl_addr ler_addl exprn_ge0.
Qed.

(** G bounds the sum over any number of steps. *)
Theorem correlation_bounds n d : \sum_(k < n) coef k * coef (k + d) <= correlation d.
Proof.
case: n => [|n]; first by rewrite big_ord0 correlation_ge0.
rewrite big_ord_recl /= mul1r; apply: ler_add => //.
have -> : \sum_(k < n) (\sum_i share i * decay i ^+ k) * coef (bump 0 k + d)
    = \sum_i \sum_j share i * share j * decay j ^+ d * \sum_(k < n) (decay i * decay j) ^+ k.
  transitivity (\sum_(k < n) \sum_i \sum_j
      share i * share j * decay j ^+ d * (decay i * decay j) ^+ k).
    apply: eq_bigr => k _; rewrite mulr_suml; apply: eq_bigr => i _.
    rewrite mulr_sumr; apply: eq_bigr => j _.
    by rewrite exprMn exprD; move: (decay i ^+ k) (decay j ^+ k) (decay j ^+ d) => p q p'; ring.
  rewrite exchange_big; apply: eq_bigr => i _; rewrite exchange_big; apply: eq_bigr => j _.
  by rewrite mulr_sumr.
apply: ler_sum => i _; apply: ler_sum => j _; apply: ler_wpmul2l.
  by rewrite !mulr_ge0 ?exprn_ge0.
by apply: geometric; [rewrite mulr_ge0 | rewrite -subr_gt0].
Qed.

(** What a contribution of step s does to the fresh draw of step t. *)
Definition effect (s t : nat) : F := if (s <= t)%N then coef (t - s) else 0.

Lemma effect_ge0 s t : 0 <= effect s t.
Proof. by rewrite /effect; case: ifP => // _; apply: coef_ge0. Qed.

(** Over T steps. *)
Variable T : nat.
Definition effects (s : nat) : 'I_T -> F := fun t => effect s t.

Lemma effects_dot_ge0 s s' : 0 <= dot (effects s) (effects s').
Proof. by apply: sumr_ge0 => t _; rewrite mulr_ge0 ?effect_ge0. Qed.

(** Two contributions d steps apart have at most G(d) in common. *)
Lemma effects_dot s d : dot (effects s) (effects (s + d)) <= correlation d.
Proof.
rewrite /dot -(big_mkord xpredT (fun t => effect s t * effect (s + d) t)).
case: (leqP T (s + d)) => Tsd.
  rewrite big_nat big1 ?correlation_ge0 // => t /andP[_ tT].
  by rewrite [effect (s + d) t]/effect leqNgt (leq_trans tT Tsd) mulr0.
rewrite (big_cat_nat _ _ _ (leq0n (s + d)) (ltnW Tsd)) /= big_nat big1 ?add0r; last first.
  by move=> t /andP[_ tsd]; rewrite [effect (s + d) t]/effect leqNgt tsd mulr0.
rewrite -[X in \sum_(X <= _ < _) _]add0n big_addn big_mkord.
apply: le_trans (correlation_bounds (T - (s + d)) d); rewrite le_eqVlt; apply/orP; left; apply/eqP.
apply: eq_bigr => k _; rewrite /effect leq_addl addnK.
by rewrite (leq_trans (leq_addr d s) (leq_addl _ _)) addnCA addKn mulrC.
Qed.

Lemma effects_dot_apart s s' b :
  (s + b <= s')%N -> dot (effects s) (effects s') <= correlation b.
Proof.
move=> sb; have ss : (s <= s')%N := leq_trans (leq_addr b s) sb.
rewrite -(subnKC ss); apply: le_trans (effects_dot _ _) (correlation_falls _).
by rewrite leq_subRL.
Qed.

(** N²: what one contribution moves over all steps, in units of itself. *)
Lemma effects_sq s : sq (effects s) <= correlation 0.
Proof. by apply: effects_dot_apart; rewrite addn0. Qed.

(** A unit's contributions, in steps `at_`, as one vector over all steps and numbers. *)
Variable X : finType.
Definition linear_part (n : nat) (at_ : nat -> nat) (delta : nat -> X -> F) : 'I_T * X -> F :=
  fun p => \sum_(i < n) outer (effects (at_ i)) (delta i) p.

(** One step: N. *)
Theorem one_step (A : F) s (delta : X -> F) :
  sq delta <= A -> sq (outer (effects s) delta) <= correlation 0 * A.
Proof.
by move=> dA; rewrite sq_outer; apply: ler_pmul (effects_sq s) dA; apply: sq_ge0.
Qed.

(** Each step of a unit comes at least `b` after the one before. *)
Lemma apart (at_ : nat -> nat) (b n i j : nat) :
  (forall i, (i.+1 < n)%N -> (at_ i + b <= at_ i.+1)%N) ->
  (i <= j)%N -> (j < n)%N -> (at_ i + (j - i) * b <= at_ j)%N.
Proof.
move=> step; elim: j => [|j IH]; first by rewrite leqn0 => /eqP -> _; rewrite addn0.
rewrite leq_eqVlt => /orP[/eqP -> _|ij jn]; first by rewrite subnn addn0.
apply: leq_trans (step j jn); rewrite subSn // mulSnr addnA leq_add2r.
by apply: IH => //; apply: ltnW.
Qed.

(** What `Participation.sensitivity` computes: k·G(0) + Σ_(0<d<k) 2·(k - d)·G(d·b). *)
Definition participation_squared (k b : nat) : F :=
  k%:R * correlation 0 + \sum_(1 <= d < k) 2%:R * (k - d)%:R * correlation (d * b).

Definition distance (i j : nat) : nat := (i - j) + (j - i).

(** It is Σ_(i,j<k) G(|i - j|·b). *)
Theorem participation_sum k b :
  \sum_(i < k) \sum_(j < k) correlation (distance i j * b) = participation_squared k b.
Proof.
rewrite /participation_squared; elim: k => [|k IH].
  by rewrite big_ord0 mul0r big_geq // addr0.
rewrite big_ord_recr /=.
have -> : \sum_(i < k) \sum_(j < k.+1) correlation (distance i j * b)
   = \sum_(i < k) \sum_(j < k) correlation (distance i j * b)
     + \sum_(i < k) correlation ((k - i) * b).
  rewrite -big_split; apply: eq_bigr => i _; rewrite big_ord_recr /=; congr (_ + correlation (_ * b)).
  by rewrite /distance (eqP (ltnW (ltn_ord i))).
have -> : \sum_(j < k.+1) correlation (distance k j * b)
   = \sum_(i < k) correlation ((k - i) * b) + correlation 0.
  rewrite big_ord_recr /= /distance !subnn; congr (_ + _); apply: eq_bigr => i _.
  by rewrite (eqP (ltnW (ltn_ord i) : (i - k == 0)%N)) addn0.
have -> : \sum_(i < k) correlation ((k - i) * b) = \sum_(1 <= d < k.+1) correlation (d * b).
  rewrite -(big_mkord xpredT (fun i => correlation ((k - i) * b))) big_nat_rev big_add1 /=.
  by rewrite !big_mkord; apply: eq_bigr => i _; rewrite add0n subKn.
rewrite IH; have [->|k0] := posnP k.
  by rewrite !big_geq // !mul0r; ring.
have -> : \sum_(1 <= d < k.+1) 2%:R * (k.+1 - d)%:R * correlation (d * b)
  = \sum_(1 <= d < k) 2%:R * (k - d)%:R * correlation (d * b)
    + 2%:R * \sum_(1 <= d < k.+1) correlation (d * b).
  transitivity (\sum_(1 <= d < k.+1) (2%:R * (k - d)%:R * correlation (d * b)
      + 2%:R * correlation (d * b))).
    apply: eq_big_nat => d /andP[_ dk]; rewrite subSn // mulrSr; ring.
  by rewrite big_split /= mulr_sumr big_nat_recr //= subnn mulr0 mul0r addr0.
by rewrite [k.+1%:R]mulrSr; ring.
Qed.

(** What changes of all steps do to step t, if they are all in the steps `at_`. *)
Theorem supported (n : nat) (at_ : nat -> nat) (delta : nat -> X -> F) (t : 'I_T) z :
  (forall i j, (i < n)%N -> (j < n)%N -> at_ i = at_ j -> i = j) ->
  (forall s, (forall i, (i < n)%N -> at_ i <> s) -> delta s z = 0) ->
  \sum_(k < t.+1) coef k * delta (t - k)%N z
  = linear_part n at_ (fun i => delta (at_ i)) (t, z).
Proof.
move=> inj elsewhere; rewrite /linear_part /outer /effects /=.
transitivity (\sum_(s < t.+1) coef (t - s) * delta s z).
  rewrite (reindex_inj rev_ord_inj) /=; apply: eq_bigr => k _.
  have kt : (k <= t)%N by rewrite -ltnS.
  by rewrite !subSS subKn.
transitivity (\sum_(s < t.+1) \sum_(i < n | at_ i == s) coef (t - s) * delta s z).
  apply: eq_bigr => s _; case: (pickP (fun i : 'I_n => at_ i == s)) => [i /eqP ei|none].
    rewrite (big_pred1 i) // => j; rewrite -ei; apply/eqP/eqP => [|->//].
    by move=> ij; apply: val_inj; apply: inj (ltn_ord j) (ltn_ord i) ij.
  rewrite elsewhere ?mulr0; first by rewrite big1 // => i _; rewrite mulr0.
  by move=> i ni e; have := none (Ordinal ni); rewrite /= e eqxx.
rewrite (exchange_big_dep xpredT) //=; apply: eq_bigr => i _.
rewrite /effect; case: (leqP (at_ i) t) => it.
  by rewrite (big_pred1 (Ordinal (it : at_ i < t.+1)%N)) // => s; apply: eq_sym.
rewrite big1 ?mul0r // => s /eqP es; have := ltn_ord s.
by rewrite -es ltnS leqNgt it.
Qed.

Lemma sum_grows (n k : nat) (f : nat -> F) :
  (n <= k)%N -> (forall i, 0 <= f i) -> \sum_(i < n) f i <= \sum_(i < k) f i.
Proof.
move=> nk f0; rewrite (big_ord_widen _ f nk) big_mkcond /=; apply: ler_sum => i _.
by case: ifP.
Qed.

Lemma sums_grow (n k : nat) (f : nat -> nat -> F) :
  (n <= k)%N -> (forall i j, 0 <= f i j) ->
  \sum_(i < n) \sum_(j < n) f i j <= \sum_(i < k) \sum_(j < k) f i j.
Proof.
move=> nk f0; apply: (@le_trans _ _ (\sum_(i < n) \sum_(j < k) f i j)).
  by apply: ler_sum => i _; apply: sum_grows.
apply: (sum_grows (f := fun i => \sum_(j < k) f i j)) nk _ => i.
by apply: sumr_ge0 => j _.
Qed.

(** A unit in at most k steps, each at least b after the one before, which adds at most `A` in each
    (squared): what it moves has at most A·Σ_(i,j<k) G(|i - j|·b). *)
Theorem participation (A : F) (k n b : nat) (at_ : nat -> nat) (delta : nat -> X -> F) :
  (n <= k)%N -> (forall i, (i.+1 < n)%N -> (at_ i + b <= at_ i.+1)%N) ->
  (forall i, sq (delta i) <= A) ->
  sq (linear_part n at_ delta) <= A * participation_squared k b.
Proof.
move=> nk step dA; have A0 : 0 <= A := le_trans (sq_ge0 _) (dA 0%N).
rewrite (gram_norm (fun i : 'I_n => effects (at_ i)) (fun i : 'I_n => delta i)).
rewrite -participation_sum.
apply: (@le_trans _ _ (A * \sum_(i < n) \sum_(j < n) correlation (distance i j * b))); last first.
  apply: ler_wpmul2l => //.
  apply: (sums_grow (f := fun i j => correlation (distance i j * b)) nk) => i j.
  exact: correlation_ge0.
rewrite mulr_sumr; apply: ler_sum => i _; rewrite mulr_sumr; apply: ler_sum => j _.
apply: (@le_trans _ _ (A * dot (effects (at_ i)) (effects (at_ j)))).
  apply: ler_wpmul2r; first exact: effects_dot_ge0.
  by apply: le_trans (ler_norm _) _; apply: dot_bound_sq.
apply: ler_wpmul2l => //; case: (leqP i j) => ij.
  by rewrite /distance (eqP (ij : (i - j == 0)%N)) add0n; apply: effects_dot_apart; apply: (apart step).
rewrite dotC /distance (eqP (ltnW ij : (j - i == 0)%N)) addn0.
by apply: effects_dot_apart; apply: (apart step) => //; apply: ltnW.
Qed.

(** Any number of steps, lengths of at most g in all: N·g, by the triangle inequality. *)
Theorem lifetime (N g : F) (n : nat) (at_ : nat -> nat) (delta : nat -> X -> F) (A : nat -> F) :
  0 <= N -> correlation 0 <= N ^+ 2 -> (forall i, 0 <= A i) ->
  (forall i, sq (delta i) <= A i ^+ 2) -> \sum_(i < n) A i <= g ->
  sq (linear_part n at_ delta) <= (N * g) ^+ 2.
Proof.
move=> N0 cN A0 dA Ag.
apply: (@le_trans _ _ ((\sum_(i < n) N * A i) ^+ 2)).
  apply: norm_sum => i; first exact: mulr_ge0.
  by rewrite exprMn sq_outer; apply: ler_pmul; rewrite ?sq_ge0 // (le_trans (effects_sq _)).
rewrite -mulr_sumr ler_pexpn2r ?nnegrE ?mulr_ge0 ?sumr_ge0 ?ler_wpmul2l //.
by apply: le_trans Ag; apply: sumr_ge0.
Qed.

End Coefficients.

Section Recursion.

(** One number of the sums. Buffers j have a decay a_j in units of 1/du, and a weight W_j in units
    of 1/wu; `half` is what is added before c is rounded down. *)
Variable J : finType.
Variables a W : J -> int.
Variables du wu half : int.

(** B_j ← ⌊a_j·B_j/du⌋ + W_j·w. *)
Definition follow (B : J -> int) (w : int) : J -> int :=
  fun j => ((a j * B j) %/ du)%Z + W j * w.

(** c = ⌊(Σ_j B_j + half)/wu⌋. *)
Definition taken (B : J -> int) : int := ((\sum_j B j + half) %/ wu)%Z.

(** Buffers before step t, when steps had the noise w. *)
Fixpoint buffers (w : nat -> int) (t : nat) : J -> int :=
  if t is t'.+1 then follow (buffers w t') (w t') else fun=> 0.

(** What step t adds fresh noise to, if y are the releases and x the exact sums: x - c. *)
Definition before_noise (y x : nat -> int) (t : nat) : int :=
  x t - taken (buffers (fun s => y s - x s) t).

Variable F : realFieldType.
Local Notation "n %:real" := ((n : int)%:~R : F) (at level 2, left associativity, format "n %:real").

Definition decay (j : J) : F := (a j)%:real / du%:real.
Definition share (j : J) : F := (W j)%:real / wu%:real.

Definition coefficient : nat -> F := coef share decay.

(** ρ = 1 + Σ_j 1/(1 - λ_j)/wu. *)
Definition rho : F := 1 + (\sum_j (1 - decay j)^-1) / wu%:real.

Hypothesis du_gt0 : 0 < du.
Hypothesis wu_gt0 : 0 < wu.
Hypothesis a_ge0 : forall j, 0 <= a j.
Hypothesis a_lt : forall j, a j < du.

Let duF : 0 < du%:real. Proof. by rewrite ltr0z. Qed.
Let wuF : 0 < wu%:real. Proof. by rewrite ltr0z. Qed.

Lemma decay_ge0 j : 0 <= decay j.
Proof. by rewrite divr_ge0 ?ler0z // ltW. Qed.

Lemma decay_lt1 j : decay j < 1.
Proof. by rewrite ltr_pdivr_mulr // mul1r ltr_int. Qed.

Let gap j : 0 < 1 - decay j. Proof. by rewrite subr_gt0 decay_lt1. Qed.

Let intrB n n' : (n - n')%:real = n%:real - n'%:real. Proof. exact: rmorphB. Qed.
Let intrD n n' : (n + n')%:real = n%:real + n'%:real. Proof. exact: rmorphD. Qed.
Let intrM n n' : (n * n')%:real = n%:real * n'%:real. Proof. exact: rmorphM. Qed.

(** Rounding down twice differs from rounding down the difference by less than one. *)
Lemma floor_difference (d n n' : int) :
  0 < d -> `|((n' %/ d)%Z - (n %/ d)%Z)%:real - (n' - n)%:real / d%:real| < 1.
Proof.
move=> d0; have dF : 0 < d%:real by rewrite ltr0z.
have E k : (k %/ d)%Z%:real = k%:real / d%:real - (k %% d)%Z%:real / d%:real.
  by rewrite {2}(divz_eq k d) intrD intrM mulrDl mulfK ?gt_eqF //; ring.
rewrite !intrB !E [X in `|X|](_ : _ = ((n %% d)%Z - (n' %% d)%Z)%:real / d%:real); last first.
  by rewrite intrB; ring.
rewrite normrM [`|_^-1|]gtr0_norm ?invr_gt0 // ltr_pdivr_mulr // mul1r -intr_norm ltr_int.
have := modz_ge0 n (lt0r_neq0 d0); have := modz_ge0 n' (lt0r_neq0 d0).
have := ltz_pmod n d0; have := ltz_pmod n' d0.
set p := (n %% d)%Z; set q := (n' %% d)%Z => qd pd q0 p0.
rewrite ltr_norml; apply/andP; split.
  by rewrite ltr_subr_addl ltr_subl_addr (lt_le_trans qd) // ler_addr.
by rewrite ltr_subl_addr (lt_le_trans pd) // ler_addl.
Qed.

(** The linear part of a buffer's difference, in units of W_j. *)
Fixpoint linear (delta : nat -> F) j (t : nat) : F :=
  if t is t'.+1 then decay j * linear delta j t' + delta t' else 0.

Lemma linear_sum (delta : nat -> F) j t :
  linear delta j t = \sum_(k < t) decay j ^+ k * delta (t - k.+1)%N.
Proof.
elim: t => [|t IH]; first by rewrite big_ord0.
rewrite big_ord_recl /= expr0 mul1r subn1 /= IH mulr_sumr addrC; congr (_ + _).
by apply: eq_bigr => k _; rewrite mulrA -exprS subSS.
Qed.

Variables y x x' : nat -> int.
Let w s := y s - x s.
Let w' s := y s - x' s.
Let delta s : F := (x s - x' s)%:real.

(** However many steps had a change, a buffer deviates from its linear part by less than
    1/(1 - λ_j). *)
Lemma buffer_deviation t j :
  `|(buffers w' t j - buffers w t j)%:real - (W j)%:real * linear delta j t| < (1 - decay j)^-1.
Proof.
elim: t => [|t IH] /=.
  by rewrite subrr mulr0 subrr normr0 invr_gt0.
rewrite /follow; set B := buffers w t; set B' := buffers w' t.
set e := ((a j * B' j %/ du)%Z - (a j * B j %/ du)%Z)%:real - (a j * B' j - a j * B j)%:real / du%:real.
have e1 : `|e| < 1 by apply: floor_difference.
have -> : ((a j * B' j %/ du)%Z + W j * w' t - ((a j * B j %/ du)%Z + W j * w t))%:real
    - (W j)%:real * (decay j * linear delta j t + delta t)
  = decay j * ((B' j - B j)%:real - (W j)%:real * linear delta j t) + e.
  by rewrite /e /delta /decay /w /w' !(intrB, intrD, intrM); ring.
apply: le_lt_trans (ler_norm_add _ _) _; rewrite normrM (ger0_norm (decay_ge0 j)).
have -> : (1 - decay j)^-1 = decay j * (1 - decay j)^-1 + 1.
  by field; rewrite lt0r_neq0 // gap.
by apply: ler_lt_add => //; apply: ler_wpmul2l (decay_ge0 j) _ _ (ltW IH).
Qed.

(** What moves: if y were released, neighbours are apart in step t by d_t. *)
Definition moved (t : nat) : int := before_noise y x t - before_noise y x' t.

(** The note's lemma: |d_t - Σ_k m_k·Δ_(t-k)| < ρ. *)
Theorem rounding_lemma t :
  `|(moved t)%:real - \sum_(k < t.+1) coefficient k * delta (t - k)%N| < rho.
Proof.
have -> : \sum_(k < t.+1) coefficient k * delta (t - k)%N
    = delta t + \sum_j share j * linear delta j t.
  rewrite big_ord_recl /= mul1r subn0; congr (_ + _).
  under eq_bigr => k _ do rewrite mulr_suml.
  rewrite exchange_big /=; apply: eq_bigr => j _; rewrite linear_sum mulr_sumr.
  by apply: eq_bigr => k _; rewrite mulrA.
pose B := \sum_j buffers w t j + half; pose B' := \sum_j buffers w' t j + half.
pose e := ((B' %/ wu)%Z - (B %/ wu)%Z)%:real - (B' - B)%:real / wu%:real.
have e1 : `|e| < 1 by apply: floor_difference.
pose dev j := (buffers w' t j - buffers w t j)%:real - (W j)%:real * linear delta j t.
have -> : (moved t)%:real - (delta t + \sum_j share j * linear delta j t)
    = e + (\sum_j dev j) / wu%:real.
  have -> : \sum_j dev j = (B' - B)%:real - \sum_j (W j)%:real * linear delta j t.
    rewrite sumrB; congr (_ - _); rewrite -(@rmorph_sum _ _ (intmul1_rmorphism F)) /=.
    by congr (_ %:~R); rewrite sumrB /B /B' opprD addrACA subrr addr0.
  have -> : \sum_j share j * linear delta j t = (\sum_j (W j)%:real * linear delta j t) / wu%:real.
    by rewrite mulr_suml; apply: eq_bigr => j _; rewrite /share; ring.
  rewrite /moved /before_noise /taken -/(B) -/(B') /e /delta !intrB; ring.
apply: le_lt_trans (ler_norm_add _ _) _; apply: ltr_le_add => //.
rewrite normrM [`|_^-1|]gtr0_norm ?invr_gt0 // ler_wpmul2r ?invr_ge0 ?(ltW wuF) //.
apply: le_trans (ler_norm_sum _ _ _) _; apply: ler_sum => j _.
exact/ltW/buffer_deviation.
Qed.

Lemma eq_buffers (v v' : nat -> int) t :
  (forall s, (s < t)%N -> v s = v' s) -> buffers v t =1 buffers v' t.
Proof.
elim: t => //= t IH same j; rewrite /follow same // IH // => s st.
exact/same/ltnW.
Qed.

(** Nothing moves in numbers where nothing has changed yet. *)
Theorem nothing_before t : (forall s, (s <= t)%N -> x s = x' s) -> moved t = 0.
Proof.
move=> same; rewrite /moved /before_noise (same t) // /taken.
rewrite (eq_bigr (fun j => buffers (fun s => y s - x' s) t j)) ?subrr // => j _.
by apply: eq_buffers => s st; rewrite same // ltnW.
Qed.

End Recursion.

Section Streams.

Variable J : finType.
Variables a W : J -> int.
Variables du wu half : int.
Variable F : realFieldType.

Hypothesis du_gt0 : 0 < du.
Hypothesis wu_gt0 : 0 < wu.
Hypothesis a_ge0 : forall j, 0 <= a j.
Hypothesis a_lt : forall j, a j < du.
Hypothesis W_ge0 : forall j, 0 <= W j.
Hypothesis W_le : \sum_j W j <= wu.

Let share_ge0 j : 0 <= share W wu F j.
Proof. by rewrite divr_ge0 ?ler0z // ltW. Qed.

Let share_le1 : \sum_j share W wu F j <= 1.
Proof.
rewrite -mulr_suml ler_pdivr_mulr ?ltr0z // mul1r.
by rewrite -(@rmorph_sum _ _ (intmul1_rmorphism F)) /= ler_int.
Qed.

Let decay_ge0 j : 0 <= decay a du F j. Proof. exact: decay_ge0. Qed.
Let decay_lt1 j : decay a du F j < 1. Proof. exact: decay_lt1. Qed.

(** The numbers of all parts, each with its public weight g/s. T steps. *)
Variable X : finType.
Variable weight : X -> F.
Variable T : nat.

(** The releases, and the exact sums of each step of two neighbours. *)
Variables y x x' : nat -> X -> int.

(** How far neighbours are apart in the fresh draws of all steps, in units of the noise. *)
Definition all_moved : 'I_T * X -> F := fun p =>
  weight p.2 * (moved a W du wu half (y^~ p.2) (x^~ p.2) (x'^~ p.2) p.1)%:~R.

Definition change (t : nat) (z : X) : F := weight z * (x t z - x' t z)%:~R.

(** If the linear part is at most S long, all is at most S + η: one rounding a step. *)
Theorem stream_distance (S eta : F) (linear : 'I_T * X -> F) :
  0 <= S -> 0 <= eta -> sq linear <= S ^+ 2 ->
  (forall (t : 'I_T) z, \sum_(k < t.+1) coefficient a W du wu F k * change (t - k)%N z
                        = linear (t, z)) ->
  rho a du wu F ^+ 2 * T%:R * (\sum_z weight z ^+ 2) <= eta ^+ 2 ->
  sq all_moved <= (S + eta) ^+ 2.
Proof.
move=> S0 e0 lS lin eb.
rewrite (@eq_sq _ _ _ (add linear (sub all_moved linear))); last first.
  by move=> p; rewrite /add /sub addrC subrK.
apply: norm_add => //; apply: le_trans eb.
have r0 : 0 <= rho a du wu F.
  rewrite addr_ge0 ?ler01 // mulr_ge0 ?invr_ge0 ?ler0z ?(ltW wu_gt0) //.
  by apply: sumr_ge0 => j _; rewrite invr_ge0 subr_ge0 ltW.
apply: (@le_trans _ _ (sq (fun p : 'I_T * X => rho a du wu F * weight p.2))).
  apply: sq_shrinks => -[t z]; rewrite /sub /all_moved -lin /=.
  have -> : \sum_(k < t.+1) coefficient a W du wu F k * change (t - k)%N z
      = weight z * \sum_(k < t.+1) coefficient a W du wu F k * (x (t - k)%N z - x' (t - k)%N z)%:~R.
    by rewrite mulr_sumr; apply: eq_bigr => k _; rewrite /change; ring.
  rewrite -mulrBr normrM mulrC normrM (ger0_norm r0) ler_wpmul2r // ltW //.
  have := @rounding_lemma J a W du wu half F du_gt0 wu_gt0 a_ge0 a_lt (y^~ z) (x^~ z) (x'^~ z) t.
  exact.
rewrite sq_scale -mulrA ler_wpmul2l ?exprn_ge0 // le_eqVlt; apply/orP; left; apply/eqP.
rewrite /sq /dot -(pair_big xpredT xpredT (fun _ z => weight z * weight z)) /=.
rewrite sumr_const card_ord [RHS]mulr_natl; congr (_ *+ _).
Qed.

(** A unit whose rows are in the steps `at_` alone: what changes elsewhere is nothing. *)
Definition only_in (n : nat) (at_ : nat -> nat) (delta : nat -> X -> F) :=
  forall s z, (forall i, (i < n)%N -> at_ i <> s) -> delta s z = 0.

Definition spaced (n b : nat) (at_ : nat -> nat) :=
  forall i, (i.+1 < n)%N -> (at_ i + b <= at_ i.+1)%N.

Lemma spaced_inj (n b : nat) (at_ : nat -> nat) :
  (0 < b)%N -> spaced n b at_ ->
  forall i j, (i < n)%N -> (j < n)%N -> at_ i = at_ j -> i = j.
Proof.
move=> b0 sp; have lt i j : (i < j)%N -> (j < n)%N -> (at_ i < at_ j)%N.
  move=> ij jn; apply: leq_trans (apart sp (ltnW ij) jn).
  by rewrite -addn1 leq_add2l muln_gt0 subn_gt0 ij.
by move=> i j ni nj e; case: (ltngtP i j) => // /lt; rewrite e ltnn; move/(_ _) => H;
  [have := H nj | have := H ni].
Qed.

(** The note's claim 5 with 3: a unit in at most k steps, at least b apart, whose changes have at
    most the squared length A each, in units of the noise: all fresh draws of all T steps
    together move by at most S + η. *)
Theorem stream_participation (S eta A : F) (k n b : nat) (at_ : nat -> nat) :
  (n <= k)%N -> (0 < b)%N -> spaced n b at_ -> only_in n at_ change ->
  (forall s, sq (change s) <= A) ->
  0 <= S -> 0 <= eta ->
  A * participation_squared (share W wu F) (decay a du F) k b <= S ^+ 2 ->
  rho a du wu F ^+ 2 * T%:R * (\sum_z weight z ^+ 2) <= eta ^+ 2 ->
  sq all_moved <= (S + eta) ^+ 2.
Proof.
move=> nk b0 sp only cA S0 e0 AS eb.
pose lin := linear_part (share W wu F) (decay a du F) (T := T) n at_ (fun i => change (at_ i)).
apply: (stream_distance S0 e0 (linear := lin)) => //.
  apply: le_trans AS; apply: participation => //; exact: decay_lt1.
by move=> t z; apply: supported; [apply: spaced_inj sp | move=> s; apply: only].
Qed.

(** Records that are replaced by others which came in other steps: the difference of two such
    units, each with half of the length, is no longer than one with the whole. *)
Theorem stream_replaced (S eta A : F) (k n n' b : nat) (at_ at' : nat -> nat)
    (gone new : nat -> X -> F) :
  (n <= k)%N -> (n' <= k)%N -> (0 < b)%N -> spaced n b at_ -> spaced n' b at' ->
  only_in n at_ gone -> only_in n' at' new ->
  (forall s z, change s z = gone s z - new s z) ->
  (forall s, sq (gone s) <= A) -> (forall s, sq (new s) <= A) ->
  0 <= S -> 0 <= eta ->
  A * participation_squared (share W wu F) (decay a du F) k b <= S ^+ 2 ->
  rho a du wu F ^+ 2 * T%:R * (\sum_z weight z ^+ 2) <= eta ^+ 2 ->
  sq all_moved <= (2%:R * S + eta) ^+ 2.
Proof.
move=> nk nk' b0 sp sp' only only' diff gA nA S0 e0 AS eb.
pose lin u m (d : nat -> X -> F) :=
  linear_part (share W wu F) (decay a du F) (T := T) m u (fun i => d (u i)).
apply: (stream_distance _ e0 (linear := sub (lin at_ n gone) (lin at' n' new))) => //.
- by rewrite mulr_ge0 ?ler0n.
- rewrite mulr_natl mulr2n; apply: norm_sub => //; apply: le_trans AS; apply: participation => //;
    exact: decay_lt1.
move=> t z; rewrite /sub /lin.
rewrite -(supported _ _ t (spaced_inj b0 sp) (fun s => @only s z)).
rewrite -(supported _ _ t (spaced_inj b0 sp') (fun s => @only' s z)).
by rewrite -sumrB; apply: eq_bigr => i _; rewrite diff mulrBr.
Qed.

(** Any number of steps, whose changes have lengths of at most g in all. *)
Theorem stream_lifetime (N g eta : F) (n : nat) (at_ : nat -> nat) (length : nat -> F) :
  (forall i j, (i < n)%N -> (j < n)%N -> at_ i = at_ j -> i = j) -> only_in n at_ change ->
  (forall s, 0 <= length s) -> (forall s, sq (change s) <= length s ^+ 2) ->
  \sum_(i < n) length (at_ i) <= g ->
  0 <= N -> 0 <= g -> 0 <= eta -> correlation (share W wu F) (decay a du F) 0 <= N ^+ 2 ->
  rho a du wu F ^+ 2 * T%:R * (\sum_z weight z ^+ 2) <= eta ^+ 2 ->
  sq all_moved <= (N * g + eta) ^+ 2.
Proof.
move=> inj only l0 cl lg N0 g0 e0 cN eb.
pose lin := linear_part (share W wu F) (decay a du F) (T := T) n at_ (fun i => change (at_ i)).
apply: (stream_distance _ e0 (linear := lin)) => //; first exact: mulr_ge0.
  exact: (@lifetime _ _ _ _ share_ge0 share_le1 decay_ge0 decay_lt1 T X N g n at_
    (fun i => change (at_ i)) (fun i => length (at_ i))).
by move=> t z; apply: supported => // s; apply: only.
Qed.

End Streams.

Section Code.

(** The code's own numbers: decays in units of 2^-30, weights in units of 2^-16, half a unit added
    before c is rounded down, and at most 2^22 steps. *)
Variables du wu half steps : int.
Hypothesis code_du : Z_of_int du = decay_unit.
Hypothesis code_wu : Z_of_int wu = weight_unit.
Hypothesis code_half : Z_of_int half = half_unit.
Hypothesis code_steps : Z_of_int steps = most_steps.

Variable F : realFieldType.
Variables J X : finType.
Variables a W : J -> int.
Variable weight : X -> F.

(** Streams, 3 and 5, with these numbers: η² is at least ρ²·2^22·Σ n·g²/s². *)
Theorem stream_of_code (T : nat) (y x x' : nat -> X -> int) (S eta A : F) (k n b : nat)
    (at_ : nat -> nat) :
  (forall j, 0 < a j < du) -> (forall j, 0 < W j) -> \sum_j W j <= wu -> T%:Z <= steps ->
  (n <= k)%N -> (0 < b)%N -> spaced n b at_ -> only_in n at_ (change weight x x') ->
  (forall s, sq (change weight x x' s) <= A) ->
  0 <= S -> 0 <= eta ->
  A * participation_squared (share W wu F) (decay a du F) k b <= S ^+ 2 ->
  rho a du wu F ^+ 2 * steps%:~R * (\sum_z weight z ^+ 2) <= eta ^+ 2 ->
  sq (all_moved a W du wu half weight (T := T) y x x') <= (S + eta) ^+ 2.
Proof using All.
move=> ad W0 Ws Ts nk b0 sp only cA S0 e0 AS eb.
have du0 : 0 < du by move: code_du; rewrite /decay_unit; lia.
have wu0 : 0 < wu by move: code_wu; rewrite /weight_unit; lia.
have a0 j : 0 <= a j by case/andP: (ad j) => /ltW.
have alt j : a j < du by case/andP: (ad j).
have main := @stream_participation _ _ _ _ _ half _ du0 wu0 a0 alt (fun j => ltW (W0 j)) Ws _ _ T
  y _ _ S eta A k n b at_ nk b0 sp only cA S0 e0 AS.
apply: main.
apply: le_trans eb; apply: ler_wpmul2r; first by apply: sumr_ge0 => z _; apply: sqr_ge0.
by apply: ler_wpmul2l; [apply: sqr_ge0 | rewrite pmulrn ler_int].
Qed.

End Code.
