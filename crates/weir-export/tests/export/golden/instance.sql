-- Made by weir export 0.2.0 --as tsql from layout.toml (host host, edition azure-mi-2018).
--
-- Needs: a managed instance, and a login that may ALTER ANY DATABASE and VIEW SERVER STATE.
--
-- Does: checks first, and stops before the first change if a check fails; grows existing data
-- files, adds new ones, grows the log; shows the result. A second run repeats nothing.
--
-- Does not: shrink, move or remove a file, nor move pages unless @move is 1.
--
-- The layout names no database, so the script changes the current one. Switch to it first (or
-- export with --database NAME).
-- USE [your database];

SET NOCOUNT ON;
SET XACT_ABORT ON;

-- 1: also rebuild tables and indexes, so that their pages spread over the files.
DECLARE @move bit = 0;
DECLARE @problem nvarchar(2048);
DECLARE @need bigint;
DECLARE @free bigint;
DECLARE @statements nvarchar(max);

-- Checks. If one of them stops the script, nothing has changed.
IF DB_ID() <= 4
BEGIN
    SET @problem = N'This is a database of the system; USE the one whose files these are.';
    THROW 50000, @problem, 1;
END;
IF NOT EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID() AND type = 0 AND name IN (N'data', N'data-2'))
BEGIN
    SET @problem = N'the current database has none of the data files of the layout. It has: '
        + ISNULL((SELECT STRING_AGG(CAST(name AS nvarchar(max)), N', ') FROM sys.master_files WHERE database_id = DB_ID() AND type = 0), N'none')
        + N'. Map names with weir export --name LAYOUT=LOGICAL.';
    THROW 50000, @problem, 1;
END;
IF NOT EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID() AND type = 1 AND name IN (N'log'))
BEGIN
    SET @problem = N'the current database has none of the log files of the layout. It has: '
        + ISNULL((SELECT STRING_AGG(CAST(name AS nvarchar(max)), N', ') FROM sys.master_files WHERE database_id = DB_ID() AND type = 1), N'none')
        + N'. Map names with weir export --name LAYOUT=LOGICAL.';
    THROW 50000, @problem, 1;
END;

-- The storage of the instance must hold the additions; tempdb is on a disk of its own.
SET @need = 0;
SET @need = @need + ISNULL((
    SELECT CASE WHEN size < 16908288 THEN 16908288 - size ELSE 0 END
    FROM sys.master_files WHERE database_id = DB_ID() AND type = 0 AND name = N'data'
), 16908288);
SET @need = @need + ISNULL((
    SELECT CASE WHEN size < 16908288 THEN 16908288 - size ELSE 0 END
    FROM sys.master_files WHERE database_id = DB_ID() AND type = 0 AND name = N'data-2'
), 16908288);
SET @need = @need + ISNULL((
    SELECT CASE WHEN size < 19660800 THEN 19660800 - size ELSE 0 END
    FROM sys.master_files WHERE database_id = DB_ID() AND type = 1 AND name = N'log'
), 19660800);
SET @free = (
    SELECT TOP (1) reserved_storage_mb FROM master.sys.server_resource_stats
    ORDER BY start_time DESC
) * 128;
SET @free = @free - (
    SELECT SUM(CAST(size AS bigint)) FROM sys.master_files WHERE database_id <> 2
);
IF @free IS NULL
    PRINT N'the storage of the instance: the free space is unknown; check it yourself.';
IF @free < @need
BEGIN
    SET @problem = N'the storage of the instance: ' + CAST(@need / 128 AS nvarchar(20)) + N' MB come to it, and ' + CAST(@free / 128 AS nvarchar(20)) + N' MB are free; reserve more storage first.';
    THROW 50000, @problem, 1;
END;

-- ---- the current database ----

-- data: 129 GiB, on a blob of its own with the limits of P15
IF EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID() AND type = 0 AND name = N'data' AND size < 16908288)
BEGIN
    PRINT N'[data]: SIZE = 129GB';
    ALTER DATABASE CURRENT MODIFY FILE (NAME = N'data', SIZE = 129GB);
END;
IF EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID() AND type = 0 AND name = N'data' AND size > 16908288)
    PRINT N'[data]: it is larger than in the layout, 129 GiB; it is not shrunk, because that moves pages one by one and fragments indexes.';

-- data-2: 129 GiB, on a blob of its own with the limits of P15
IF EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID() AND type = 0 AND name = N'data-2' AND size < 16908288)
BEGIN
    PRINT N'[data-2]: SIZE = 129GB';
    ALTER DATABASE CURRENT MODIFY FILE (NAME = N'data-2', SIZE = 129GB);
END;
IF EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID() AND type = 0 AND name = N'data-2' AND size > 16908288)
    PRINT N'[data-2]: it is larger than in the layout, 129 GiB; it is not shrunk, because that moves pages one by one and fragments indexes.';
IF NOT EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID() AND type = 0 AND name = N'data')
BEGIN
    PRINT N'[data]: adding 129 GiB';
    ALTER DATABASE CURRENT ADD FILE (NAME = N'data', SIZE = 129GB)
        TO FILEGROUP [PRIMARY];
END;
IF NOT EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID() AND type = 0 AND name = N'data-2')
BEGIN
    PRINT N'[data-2]: adding 129 GiB';
    ALTER DATABASE CURRENT ADD FILE (NAME = N'data-2', SIZE = 129GB)
        TO FILEGROUP [PRIMARY];
END;

-- log: 150 GiB, on a blob of its own with the limits of P15
IF EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID() AND type = 1 AND name = N'log' AND size < 19660800)
BEGIN
    PRINT N'[log]: SIZE = 150GB';
    ALTER DATABASE CURRENT MODIFY FILE (NAME = N'log', SIZE = 150GB);
END;
IF EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID() AND type = 1 AND name = N'log' AND size > 19660800)
    PRINT N'[log]: it is larger than in the layout, 150 GiB; it is not shrunk, because that moves pages one by one and fragments indexes.';

-- Data movement.
-- New files are empty: existing pages stay in the old files, with their I/O, until they are
-- rewritten. A rebuild of every table and index rewrites them. It needs extra room for the
-- largest of them, locks them unless it runs ONLINE, fills the log, and enables disabled indexes;
-- the files become about even, not exactly. If that is too much at once, create a filegroup with
-- the new files and move the indexes one by one: CREATE INDEX ... WITH (DROP_EXISTING = ON,
-- ONLINE = ON) ON [filegroup].
SET @statements = (
    SELECT STRING_AGG(CAST(
            CASE WHEN i.type = 0 THEN N'ALTER TABLE ' ELSE N'ALTER INDEX ALL ON ' END
            + QUOTENAME(s.name) + N'.' + QUOTENAME(t.name) + N' REBUILD;' AS nvarchar(max)
        ), NCHAR(10))
    FROM sys.tables AS t
    JOIN sys.schemas AS s ON s.schema_id = t.schema_id
    JOIN sys.indexes AS i ON i.object_id = t.object_id AND i.index_id IN (0, 1)
    WHERE t.is_memory_optimized = 0 AND t.is_external = 0
);
IF @move = 1
    EXEC sys.sp_executesql @statements;
ELSE
    SELECT @statements AS [run these, or set @move to 1, to spread the pages];

-- The present files, beside those of the layout.
SELECT DB_NAME(w.database_id) AS [database], w.name AS [file],
    f.size / 128 AS [size MB], w.pages / 128 AS [layout MB],
    f.growth, f.is_percent_growth, f.max_size, f.physical_name
FROM (VALUES
    (DB_ID(), 0, N'data', CAST(16908288 AS bigint)),
    (DB_ID(), 0, N'data-2', CAST(16908288 AS bigint)),
    (DB_ID(), 1, N'log', CAST(19660800 AS bigint))
) AS w (database_id, type, name, pages)
LEFT JOIN sys.master_files AS f
    ON f.database_id = w.database_id AND f.type = w.type
    AND f.name = w.name COLLATE Latin1_General_100_CI_AS;
