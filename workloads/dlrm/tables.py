"""How many rows each of the 26 embedding tables has. Settings go in, 26 counts come out.

The counts are those of distinct categories in Criteo's click logs, as the DLRM reference implementation finds them
(Naumov et al., arXiv 1906.00091; github.com/facebookresearch/dlrm), and of MLPerf Training's recommendation benchmark.
"""

import re

from collo import SettingError
from collo_data.criteo import KAGGLE, TERABYTE
from collo_memory import bytes_of, shown

VALUE_BYTES = 4  # weights are fp32, whatever the precision of the arithmetic
COUNT = 26
KNOWN = {
    "kaggle": KAGGLE,  # display advertising challenge, 7 days: 33.8 million rows
    # Terabyte click logs, 24 days: 882.8 million rows
    "terabyte": (
        227605432, 39060, 17295, 7424, 20265, 3, 7122, 1543, 63, 130229467, 3067956, 405282, 10,
        2209, 11938, 155, 4, 976, 14, 292775614, 40790948, 187188510, 590152, 12973, 108, 36,
    ),
    # The same with category numbers modulo 40 million, as in MLPerf Training 0.7 to 2.1: 187.8 million rows
    "terabyte-40m": TERABYTE,
}  # fmt: skip
UNSCALED = "unscaled"
MOST_ROWS = 2**40  # of one table; beyond this, arithmetic fails before memory does


def rows(tables, max_table, table_bytes, width):
    """The rows of every table. `tables` names a set or is one number for all; a limit or a size in bytes changes it."""
    if max_table < 0:
        raise SettingError(f"`max_table` is {max_table}: it is a number of rows, 0 for no limit")
    if max_table and table_bytes != UNSCALED:
        raise SettingError(
            f"`max_table` {max_table} and `table_bytes` {table_bytes} both say how large the tables are: "
            f"set `table_bytes` to {UNSCALED} or `max_table` to 0"
        )
    counts = KNOWN.get(tables) or uniform(tables)
    if max_table:
        return tuple(min(count, max_table) for count in counts)
    return counts if table_bytes == UNSCALED else fitted(counts, table_bytes, width)


def uniform(tables):
    if not (re.fullmatch(r"\d{1,15}", tables, re.ASCII) and 1 <= int(tables) <= MOST_ROWS):
        known = ", ".join(KNOWN)
        raise SettingError(f"`tables` is `{tables}`: it is one of {known}, or the rows of every table, 1 or more")
    return (int(tables),) * COUNT


def fitted(counts, table_bytes, width):
    """The counts, made to take about so many bytes: the large ones cut to one length, or all grown by one factor."""
    size = bytes_of(table_bytes)
    if size is None:
        raise SettingError(f"`table_bytes` is `{table_bytes}`: it is a size such as 500MB or 8GB, or {UNSCALED}")
    budget = size // (width * VALUE_BYTES)
    if budget < len(counts):
        least = shown(len(counts) * width * VALUE_BYTES)
        raise SettingError(f"`table_bytes` is {table_bytes}: {COUNT} tables of one row take {least}, give them more")
    if budget >= sum(counts):
        grown = tuple(count * budget // sum(counts) for count in counts)
        if max(grown) > MOST_ROWS:
            raise SettingError(f"`table_bytes` is {table_bytes}: no table can have more than {MOST_ROWS} rows")
        return grown
    fits, too_long = 1, max(counts)
    while too_long - fits > 1:
        length = (fits + too_long) // 2
        if sum(min(count, length) for count in counts) <= budget:
            fits = length
        else:
            too_long = length
    return tuple(min(count, fits) for count in counts)
