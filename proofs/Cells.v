(** Rows that are counted in cells: how far a row or a record moves all cells of a part together,
    in sums of magnitudes (the L1 norm), and what discrete Laplace noise makes of it. *)

From mathcomp Require Import all_ssreflect all_algebra.
From mathcomp.algebra_tactics Require Import ring.
From Discreet Require Import Vectors.

Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.

Import Order.TTheory GRing.Theory Num.Theory Num.Def.
Local Open Scope ring_scope.

Section Cap.

(** The cells of a part. *)
Variable X : finType.

(** What a record adds: c of its n rows are in a cell, a row counts u, and k is the cap. *)
Definition counted (u k : nat) (c : X -> nat) (z : X) : nat :=
  let n := (\sum_z c z)%N in
  if (n * u <= k)%N then (c z * u)%N else ((c z * k) %/ n)%N.

(** Σ_z ⌊c_z·k/n⌋ ≤ k: a record adds at most its cap, in all cells together. *)
Theorem cells_cap (u k : nat) (c : X -> nat) : (\sum_z counted u k c z <= k)%N.
Proof.
pose n := (\sum_z c z)%N; case: (boolP (n * u <= k)%N) => nk.
  rewrite (eq_bigr (fun z => c z * u)%N); first by rewrite -big_distrl.
  by move=> z _; rewrite /counted -/n nk.
rewrite (eq_bigr (fun z => (c z * k) %/ n)%N); last first.
  by move=> z _; rewrite /counted -/n (negbTE nk).
have n0 : (0 < n)%N by rewrite lt0n; apply: contraNneq nk => ->.
rewrite -(leq_pmul2r n0) big_distrl /= mulnC.
apply: (@leq_trans (\sum_z c z * k)); first by apply: leq_sum => z _; apply: leq_trunc_div.
by rewrite -big_distrl.
Qed.

(** A row alone: u, in one cell. *)
Theorem cells_row (u : nat) (z : X) :
  (\sum_x counted u u (fun x => x == z) x = u)%N.
Proof.
have one : (\sum_x (x == z) = 1)%N by rewrite -big_mkcond /= (big_pred1 z).
rewrite /counted one mul1n leqnn (bigD1 z) //= eqxx mul1n big1 ?addn0 // => x.
by move=> /negbTE ->.
Qed.

(** Data sets as lists of what their units add. *)
Definition cells (D : seq (X -> nat)) (z : X) : int := \sum_(c <- D) (c z)%:Z.

Definition moved (D D' : seq (X -> nat)) : int := \sum_z `|cells D z - cells D' z|.

Definition size_of (c : X -> nat) : nat := (\sum_z c z)%N.

Let sum_z (c : X -> nat) : \sum_z (c z)%:Z = (size_of c)%:Z.
Proof. by rewrite /size_of; elim/big_rec2: _ => // z x y _ ->; rewrite PoszD. Qed.

(** Added or removed: by what it adds. *)
Theorem cells_add b a (c : X -> nat) : moved (b ++ c :: a) (b ++ a) = (size_of c)%:Z.
Proof.
rewrite -sum_z; apply: eq_bigr => z _; rewrite /cells !big_cat big_cons /=.
by rewrite (_ : _ - _ = (c z)%:Z) //; ring.
Qed.

Theorem cells_remove b a (c : X -> nat) : moved (b ++ a) (b ++ c :: a) = (size_of c)%:Z.
Proof. by rewrite -(cells_add b a); apply: eq_bigr => z _; rewrite distrC. Qed.

(** Replaced: by what both add. *)
Theorem cells_replace b a (c c' : X -> nat) :
  moved (b ++ c :: a) (b ++ c' :: a) <= (size_of c + size_of c')%:Z.
Proof.
rewrite PoszD -!sum_z -big_split; apply: ler_sum => z _; rewrite /cells !big_cat !big_cons /=.
have -> : \sum_(j <- b) (j z)%:Z + ((c z)%:Z + \sum_(j <- a) (j z)%:Z)
    - (\sum_(j <- b) (j z)%:Z + ((c' z)%:Z + \sum_(j <- a) (j z)%:Z)) = (c z)%:Z - (c' z)%:Z.
  by ring.
by apply: le_trans (ler_norm_sub _ _) _.
Qed.

(** A capped record: k if it is added or removed, 2·k if it is replaced. *)
Theorem cells_record_replaced (u k : nat) b a (c c' : X -> nat) :
  moved (b ++ counted u k c :: a) (b ++ counted u k c' :: a) <= (2 * k)%:Z.
Proof.
apply: le_trans (cells_replace _ _ _ _) _; rewrite lez_nat mul2n -addnn.
by apply: leq_add; apply: cells_cap.
Qed.

End Cap.

Section Parts.

Variable F : realFieldType.
Variables (P : finType) (share : P -> F) (epsilon Delta : F).

(** Parts with noise of scale Δ/(w_j·ε) spend Σ_j w_j·ε = ε together. *)
Theorem cells_budget (moves : P -> F) :
  0 < epsilon -> 0 < Delta -> (forall j, 0 < share j) -> \sum_j share j = 1 ->
  (forall j, moves j <= Delta) ->
  \sum_j moves j / (Delta / (share j * epsilon)) <= epsilon.
Proof.
move=> e0 D0 s0 s1 mD; rewrite -[X in _ <= X]mul1r -s1 mulr_suml; apply: ler_sum => j _.
rewrite invf_div mulrA ler_pdivr_mulr // mulrC.
by apply: ler_wpmul2l => //; rewrite mulr_ge0 // ltW.
Qed.

End Parts.
