(** Records of many rows, over all heads (and parts) at once: the cap on what a record adds, that
    short records satisfy it, that what is scaled down satisfies it, and how far neighbours are
    apart. Over any ordered field; the bound C of a head is a number above zero. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Discreet Require Import Vectors.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory Num.Def.
Local Open Scope ring_scope.

Section Gram.

Variable R : realDomainType.
Variables I J : finType.

(** ‖Σ w_i ⊗ a_i‖² from two Gram matrices. *)
Theorem gram_norm (n : nat) (w : 'I_n -> I -> R) (a : 'I_n -> J -> R) :
  sq (fun p => \sum_i outer (w i) (a i) p)
  = \sum_i \sum_j dot (a i) (a j) * dot (w i) (w j).
Proof.
rewrite /sq dot_suml; apply: eq_bigr => i _; rewrite dotC dot_suml; apply: eq_bigr => j _.
by rewrite dot_outer (dotC (w j)) (dotC (a j)) mulrC.
Qed.

End Gram.

(** The same of second moments: Σ_ij ⟨a_i, a_j⟩². *)
Theorem gram_moments (R : realDomainType) (J : finType) (n : nat) (a : 'I_n -> J -> R) :
  sq (fun p => \sum_i outer (a i) (a i) p) = \sum_i \sum_j dot (a i) (a j) ^+ 2.
Proof. by rewrite (gram_norm a a); apply: eq_bigr => i _; apply: eq_bigr => j _; rewrite -expr2. Qed.

Section Cap.

Variable F : realFieldType.

(** H heads; each has numbers of its own, and a bound C on what one row adds. *)
Variable H : finType.
Variable I : H -> finType.
Variable C : H -> F.
Hypothesis C_gt0 : forall h, 0 < C h.

Let over_ge0 h : 0 <= (C h ^+ 2)^-1.
Proof. by rewrite invr_ge0 exprn_ge0 // ltW. Qed.

(** What one unit adds to all heads. *)
Definition joint := forall h, I h -> F.

(** Σ_h (‖M_h‖/C_h)². *)
Definition influence (M : joint) : F := \sum_h sq (M h) / C h ^+ 2.

(** H·g², with g the influence of a record in rows (`Settings.squared_cap`). *)
Definition cap (g : F) : F := #|H|%:R * g ^+ 2.

(** A record of at most g rows satisfies the cap as it is. *)
Theorem few_rows (g : F) (rows : seq joint) :
  (size rows)%:R <= g -> (forall (x : joint) h, sq (x h) <= C h ^+ 2) ->
  influence (fun h i => \sum_(x <- rows) (x : joint) h i) <= cap g.
Proof.
move=> sg bound; rewrite /cap -sum1_card natr_sum mulr_suml; apply: ler_sum => h _.
rewrite ler_pdivr_mulr ?exprn_gt0 // mul1r -exprMn.
have := @norm_sum F (I h) joint rows (fun=> C h) (fun x => x h) (fun=> ltW (C_gt0 h)) (fun x => bound x h).
rewrite big_const_seq count_predT iter_addr_0 => /le_trans; apply.
rewrite -mulr_natl ler_pexpn2r ?nnegrE ?mulr_ge0 ?ler0n ?(le_trans _ sg) //; last 2 first.
- exact: ltW.
- exact: ltW.
by rewrite ler_wpmul2r // ltW.
Qed.

(** A long record: every number of M times f, cut towards zero, with f²·influence ≤ cap. *)
Theorem scaled_record (f g : F) (M cut : joint) :
  (forall h i, `|cut h i| <= `|f * M h i|) -> f ^+ 2 * influence M <= cap g ->
  influence cut <= cap g.
Proof.
move=> short; apply: le_trans; rewrite mulr_sumr; apply: ler_sum => h _.
rewrite mulrA ler_wpmul2r //.
by rewrite -(sq_scale f (@M h)); apply: sq_shrinks => i; apply: short.
Qed.

(** Added or removed: by at most √H·g. That is what the cap says. Replaced: by twice that. *)
Theorem record_replaced (g : F) (M M' : joint) :
  influence M <= cap g -> influence M' <= cap g ->
  influence (fun h => sub (M h) (M' h)) <= 2%:R ^+ 2 * cap g.
Proof.
move=> Mg Mg'; apply: (@le_trans _ _ (2%:R * (influence M + influence M'))).
  rewrite mulrDr !mulr_sumr -big_split; apply: ler_sum => h _ /=.
  rewrite !mulrA -mulrDl -mulrDr ler_wpmul2r //.
  exact: sq_sub2.
rewrite expr2 -mulrA ler_pmul2l ?ltr0n // mulr_natl mulr2n.
exact: ler_add.
Qed.

(** The state of a data set of records: with and without one of them, or with another one. *)
Definition joint_total (D : seq joint) : joint := fun h i => \sum_(M <- D) (M : joint) h i.
Arguments joint_total : clear implicits.

Theorem record_added (g : F) (before after : seq joint) (M : joint) :
  influence M <= cap g ->
  influence (fun h => sub (joint_total (before ++ M :: after) h)
                          (joint_total (before ++ after) h)) <= cap g.
Proof.
move=> Mg; apply: le_trans Mg; rewrite le_eqVlt; apply/orP; left; apply/eqP.
apply: eq_bigr => h _; congr (_ / _); apply: eq_sq => i.
by rewrite /sub /joint_total !big_cat big_cons /=; ring.
Qed.

Theorem record_exchanged (g : F) (before after : seq joint) (M M' : joint) :
  influence M <= cap g -> influence M' <= cap g ->
  influence (fun h => sub (joint_total (before ++ M :: after) h)
                          (joint_total (before ++ M' :: after) h)) <= 2%:R ^+ 2 * cap g.
Proof.
move=> Mg Mg'; apply: le_trans (record_replaced Mg Mg').
rewrite le_eqVlt; apply/orP; left; apply/eqP.
apply: eq_bigr => h _; congr (_ / _); apply: eq_sq => i.
by rewrite /sub /joint_total !big_cat !big_cons /=; ring.
Qed.

End Cap.
