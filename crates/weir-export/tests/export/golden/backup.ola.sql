-- Made by weir export 0.2.0 --as ola from layout.toml (host host, edition azure-now).
--
-- Needs: the SQL Server Maintenance Solution of Ola Hallengren in the database that this runs in,
-- and the directories, which SQL Server may write to.
--
-- Does: backs up as backup.toml describes it: @NumberOfFiles are spread evenly over the
-- directories. The procedure names the files, and creates a folder for the server and the
-- database.
--
-- Does not: delete earlier backups: add @CleanupTime for that, in hours.

EXECUTE dbo.DatabaseBackup
    @Databases = N'[sales]',
    @Directory = N'F:\Backup,G:\',
    @BackupType = N'FULL',
    @NumberOfFiles = 4,
    @MaxTransferSize = 4194304,
    @Compress = N'Y',
    @Checksum = N'Y',
    @Verify = N'Y',
    @LogToTable = N'Y',
    @Stats = 5;
