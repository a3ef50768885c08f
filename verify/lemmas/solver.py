"""Questions to the solver."""

import z3

EFFORT = 500_000_000
"""How much work an answer may be, in the solver's own unit, so that a busy machine gets the same answers."""


class Undecided(Exception):
    """No answer, or something that is not understood: neither proved nor refuted."""


class Solver:
    def __init__(self):
        self.questions = 0

    def model(self, conditions):
        """Words that meet the conditions, `None` if there are none."""
        self.questions += 1
        solver = z3.SolverFor("QF_BV")
        solver.set(rlimit=EFFORT)
        solver.add(conditions)
        answer = solver.check()
        if answer == z3.unknown:
            raise Undecided(f"no answer: {solver.reason_unknown()}")
        return solver.model() if answer == z3.sat else None
