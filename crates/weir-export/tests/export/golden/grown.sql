-- Made by weir export 0.2.0 --as tsql from layout.toml (host host, edition azure-now).
-- It contains the changes from old.toml, the layout in use.
--
-- Needs: SQL Server 2017 or newer on the machine, folders at the mounts that it may write to, and
-- a login that may ALTER ANY DATABASE and VIEW SERVER STATE.
--
-- Does: checks first, and stops before the first change if a check fails; grows existing data
-- files, adds new ones, grows the log; shows the result. A second run repeats nothing.
--
-- Does not: shrink, move or remove a file, nor move pages unless @move is 1.

SET NOCOUNT ON;
SET XACT_ABORT ON;

-- 1: also rebuild tables and indexes, so that their pages spread over the files.
DECLARE @move bit = 0;
DECLARE @problem nvarchar(2048);
DECLARE @need bigint;
DECLARE @free bigint;
DECLARE @statements nvarchar(max);

-- Checks. If one of them stops the script, nothing has changed.
IF DB_ID(N'sales') IS NULL
BEGIN
    SET @problem = N'There is no database [sales] here; make or restore it first.';
    THROW 50000, @problem, 1;
END;
IF NOT EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID(N'sales') AND type = 0 AND name IN (N'data-1', N'data-2'))
BEGIN
    SET @problem = N'[sales] has none of the data files of the layout. It has: '
        + ISNULL((SELECT STRING_AGG(CAST(name AS nvarchar(max)), N', ') FROM sys.master_files WHERE database_id = DB_ID(N'sales') AND type = 0), N'none')
        + N'. Map names with weir export --name LAYOUT=LOGICAL.';
    THROW 50000, @problem, 1;
END;

-- pool must have room for the additions.
SET @need = 0;
SET @need = @need + ISNULL((
    SELECT CASE WHEN size < 78643200 THEN 78643200 - size ELSE 0 END
    FROM sys.master_files WHERE database_id = DB_ID(N'sales') AND type = 0 AND name = N'data-1'
), 78643200);
SET @need = @need + ISNULL((
    SELECT CASE WHEN size < 78643200 THEN 78643200 - size ELSE 0 END
    FROM sys.master_files WHERE database_id = DB_ID(N'sales') AND type = 0 AND name = N'data-2'
), 78643200);
SET @free = (
    SELECT MAX(v.available_bytes) / 8192 FROM sys.master_files AS f
    CROSS APPLY sys.dm_os_volume_stats(f.database_id, f.file_id) AS v
    WHERE LEFT(f.physical_name, 8) = N'F:\Data\'
);
IF @free IS NULL
    PRINT N'pool: the free space is unknown; check it yourself.';
IF @free < @need
BEGIN
    SET @problem = N'pool: ' + CAST(@need / 128 AS nvarchar(20)) + N' MB come to it, and ' + CAST(@free / 128 AS nvarchar(20)) + N' MB are free; make it larger first.';
    THROW 50000, @problem, 1;
END;

-- ---- [sales] ----

-- data-1: 600 GiB, on pool
IF EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID(N'sales') AND type = 0 AND name = N'data-1' AND size < 78643200)
BEGIN
    PRINT N'[sales].[data-1]: SIZE = 600GB';
    ALTER DATABASE [sales] MODIFY FILE (NAME = N'data-1', SIZE = 600GB);
END;
IF EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID(N'sales') AND type = 0 AND name = N'data-1' AND size > 78643200)
    PRINT N'[sales].[data-1]: it is larger than in the layout, 600 GiB; it is not shrunk, because that moves pages one by one and fragments indexes.';

-- data-2: 600 GiB, on pool
IF EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID(N'sales') AND type = 0 AND name = N'data-2' AND size < 78643200)
BEGIN
    PRINT N'[sales].[data-2]: SIZE = 600GB';
    ALTER DATABASE [sales] MODIFY FILE (NAME = N'data-2', SIZE = 600GB);
END;
IF EXISTS (SELECT 1 FROM sys.master_files WHERE database_id = DB_ID(N'sales') AND type = 0 AND name = N'data-2' AND size > 78643200)
    PRINT N'[sales].[data-2]: it is larger than in the layout, 600 GiB; it is not shrunk, because that moves pages one by one and fragments indexes.';

-- The present files, beside those of the layout.
SELECT DB_NAME(w.database_id) AS [database], w.name AS [file],
    f.size / 128 AS [size MB], w.pages / 128 AS [layout MB],
    f.growth, f.is_percent_growth, f.max_size, f.physical_name
FROM (VALUES
    (DB_ID(N'sales'), 0, N'data-1', CAST(78643200 AS bigint)),
    (DB_ID(N'sales'), 0, N'data-2', CAST(78643200 AS bigint)),
    (DB_ID(N'sales'), 1, N'sales-log', CAST(13107200 AS bigint))
) AS w (database_id, type, name, pages)
LEFT JOIN sys.master_files AS f
    ON f.database_id = w.database_id AND f.type = w.type
    AND f.name = w.name COLLATE Latin1_General_100_CI_AS;
