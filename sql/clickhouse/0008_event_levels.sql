-- An earlier version could store a level that the enum lacks, which fails every query that reads it. Parts without such a
-- row are not rewritten.
alter table {database}.events update level = 'info' where toInt8(level) not between 1 and 4;
