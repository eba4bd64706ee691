-- Made by weir export 0.2.0 --as tsql-backup from layout.toml (host host, edition azure-now).
--
-- Needs: SQL Server, a login that may BACKUP DATABASE and create databases (which RESTORE
-- VERIFYONLY asks for), and https://one.blob.core.windows.net/backups/sales.
--
-- Does: backs up to 4 stripes as backup.toml describes it, under names with the time in them, and
-- verifies them.
--
-- Does not: delete earlier backups, nor restore: the statement is at the end, as a comment. All
-- stripes are needed for a restore.

IF NOT EXISTS (SELECT 1 FROM sys.credentials WHERE name = N'https://one.blob.core.windows.net/backups')
BEGIN
    THROW 50000, N'create a credential called https://one.blob.core.windows.net/backups with a SAS token first', 1;
END;
-- With the token of the container, which may read, write and list there:
--    CREATE CREDENTIAL [https://one.blob.core.windows.net/backups]
--    WITH IDENTITY = 'SHARED ACCESS SIGNATURE', SECRET = '<the token, without ?>';

DECLARE @when nvarchar(15) = CONVERT(nvarchar(8), GETDATE(), 112) + N'_'
    + REPLACE(CONVERT(nvarchar(8), GETDATE(), 108), N':', N'');
DECLARE @file1 nvarchar(259) = N'https://one.blob.core.windows.net/backups/sales/sales_full_' + @when + N'_1of4.bak';
DECLARE @file2 nvarchar(259) = N'https://one.blob.core.windows.net/backups/sales/sales_full_' + @when + N'_2of4.bak';
DECLARE @file3 nvarchar(259) = N'https://one.blob.core.windows.net/backups/sales/sales_full_' + @when + N'_3of4.bak';
DECLARE @file4 nvarchar(259) = N'https://one.blob.core.windows.net/backups/sales/sales_full_' + @when + N'_4of4.bak';

BACKUP DATABASE [sales] TO
    URL = @file1,
    URL = @file2,
    URL = @file3,
    URL = @file4
WITH
    FORMAT,
    INIT,
    COMPRESSION,
    CHECKSUM,
    MAXTRANSFERSIZE = 4194304,
    BLOCKSIZE = 65536,
    STATS = 5;

RESTORE VERIFYONLY FROM
    URL = @file1,
    URL = @file2,
    URL = @file3,
    URL = @file4
WITH CHECKSUM, BLOCKSIZE = 65536, STATS = 5;

-- To restore, with the time of the backup for YYYYMMDD_HHMMSS. Add REPLACE to overwrite the
-- database, and MOVE for each file that goes to another path:
--    RESTORE DATABASE [sales] FROM
--        URL = N'https://one.blob.core.windows.net/backups/sales/sales_full_YYYYMMDD_HHMMSS_1of4.bak',
--        URL = N'https://one.blob.core.windows.net/backups/sales/sales_full_YYYYMMDD_HHMMSS_2of4.bak',
--        URL = N'https://one.blob.core.windows.net/backups/sales/sales_full_YYYYMMDD_HHMMSS_3of4.bak',
--        URL = N'https://one.blob.core.windows.net/backups/sales/sales_full_YYYYMMDD_HHMMSS_4of4.bak'
--    WITH CHECKSUM, BLOCKSIZE = 65536, MAXTRANSFERSIZE = 4194304, STATS = 5;
