# Made by weir export 0.2.0 --as dbatools from layout.toml (host host, edition azure-now).
#
# Needs: the module dbatools, and folders that SQL Server may write to.
#
# Does: backs up as backup.toml describes it and verifies the backup. There is one path for each
# stripe, because with several paths the module writes one file to each.
#
# Does not: delete earlier backups, nor restore: the command is at the end, as a comment.

param(
    [Parameter(Mandatory)]
    [string] $SqlInstance
)

$ErrorActionPreference = 'Stop'

$backup = @{
    SqlInstance = $SqlInstance
    Database = 'sales'
    Type = 'Full'
    Path = @(
        'F:\Backup',
        'G:\',
        'F:\Backup',
        'G:\'
    )
    FileCount = 4
    MaxTransferSize = 4194304
    CompressBackup = $true
    Checksum = $true
    Verify = $true
    EnableException = $true
}
Backup-DbaDatabase @backup

# To restore the newest backup (add -WithReplace to overwrite the database):
#    Restore-DbaDatabase -SqlInstance $SqlInstance -Path 'F:\Backup', 'G:\' -DatabaseName 'sales'
