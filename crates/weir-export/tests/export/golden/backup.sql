-- Made by weir export 0.2.0 --as tsql-backup from layout.toml (host host, edition azure-now).
--
-- Needs: SQL Server, a login that may BACKUP DATABASE and create databases (which RESTORE
-- VERIFYONLY asks for), and F:\Backup, G:\.
--
-- Does: backs up to 4 stripes as backup.toml describes it, under names with the time in them, and
-- verifies them.
--
-- Does not: delete earlier backups, nor restore: the statement is at the end, as a comment. All
-- stripes are needed for a restore.

DECLARE @when nvarchar(15) = CONVERT(nvarchar(8), GETDATE(), 112) + N'_'
    + REPLACE(CONVERT(nvarchar(8), GETDATE(), 108), N':', N'');
DECLARE @file1 nvarchar(259) = N'F:\Backup\sales_full_' + @when + N'_1of4.bak';
DECLARE @file2 nvarchar(259) = N'G:\sales_full_' + @when + N'_2of4.bak';
DECLARE @file3 nvarchar(259) = N'F:\Backup\sales_full_' + @when + N'_3of4.bak';
DECLARE @file4 nvarchar(259) = N'G:\sales_full_' + @when + N'_4of4.bak';

BACKUP DATABASE [sales] TO
    DISK = @file1,
    DISK = @file2,
    DISK = @file3,
    DISK = @file4
WITH
    FORMAT,
    INIT,
    COMPRESSION,
    CHECKSUM,
    MAXTRANSFERSIZE = 4194304,
    STATS = 5;

RESTORE VERIFYONLY FROM
    DISK = @file1,
    DISK = @file2,
    DISK = @file3,
    DISK = @file4
WITH CHECKSUM, STATS = 5;

-- To restore, with the time of the backup for YYYYMMDD_HHMMSS. Add REPLACE to overwrite the
-- database, and MOVE for each file that goes to another path:
--    RESTORE DATABASE [sales] FROM
--        DISK = N'F:\Backup\sales_full_YYYYMMDD_HHMMSS_1of4.bak',
--        DISK = N'G:\sales_full_YYYYMMDD_HHMMSS_2of4.bak',
--        DISK = N'F:\Backup\sales_full_YYYYMMDD_HHMMSS_3of4.bak',
--        DISK = N'G:\sales_full_YYYYMMDD_HHMMSS_4of4.bak'
--    WITH CHECKSUM, MAXTRANSFERSIZE = 4194304, STATS = 5;
