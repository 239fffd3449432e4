"""From a recording to the columns that a picture or a table shows: pure functions, no Panel."""
