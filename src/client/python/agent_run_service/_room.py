from typing import List, NamedTuple

from ._lane import Lane, Queued


class Dropped(NamedTuple):
    """What was dropped of a run."""

    lane: Lane
    reports: List[Queued]
    #: Whether nothing of the run is left, and what is still reported about it must be dropped, too.
    is_run_dropped: bool


def drop_oldest(lanes: List[Lane], length: int) -> List[Dropped]:
    """Drops the oldest reports: what was reported up to some moment, in the order of all runs. `length`: the room needed.

    A run that was over by then and of which nothing was sent is dropped as a whole. Of other runs only events and scores
    are: later reports need their starts and tasks, and without an end a run would never be over. When that is not enough,
    runs that go on are dropped as a whole, and tasks of those that the service knows. Children of a dropped run are dropped
    with it: the service would refuse them.
    """
    of_open_runs = False
    found = _droppable(lanes, of_open_runs)
    if sum(each for _, each in found) < length:
        of_open_runs = True
        found = _droppable(lanes, of_open_runs)
    through = 0
    for mark, each in found:
        if length <= 0:
            break
        through, length = mark, length - each
    runs: set = set()
    dropped = []
    for lane in lanes:
        if not lane.is_whole(through, of_open_runs) and lane.parent_run_id not in runs:
            dropped.append(Dropped(lane, lane.drop_through(through, of_open_runs), False))
            continue
        runs.add(lane.run_id)
        goes_on = not lane.has_end
        dropped.append(Dropped(lane, lane.drop_all(), goes_on))
    return dropped


def _droppable(lanes: List[Lane], of_open_runs: bool) -> "list[tuple[int, int]]":
    return sorted(each for lane in lanes for each in lane.droppable(of_open_runs))
