"""Evidence that anyone can run: what audits and attacks find in releases, beside what is promised.

`audit` builds a pipeline many times and bounds its ε from below; `one_run` does so with one build
and many canaries. Whatever they are given and return is NOT PRIVATE: use made-up rows. `attack`
shows what attackers get from files of one's own rows; that is NOT PRIVATE, either.
"""

from discreet.audit.attacks import Attacked, attack
from discreet.audit.canaries import OneRun, one_run
from discreet.audit.pairs import audit
from discreet.audit.report import Audit

__all__ = ["Attacked", "Audit", "OneRun", "attack", "audit", "one_run"]
