/* What SQL Server says of its storage, for weir observe import and weir observe --sqlserver.

   It reads views of the system and changes nothing: no counter is cleared, no table is made. It needs
   VIEW SERVER STATE (SQL Server 2022 and newer: VIEW SERVER PERFORMANCE STATE; Azure SQL Database:
   VIEW DATABASE STATE). Runs on SQL Server 2014 and newer, Azure SQL Database and Azure SQL Managed
   Instance; what one of them does not have is not asked of it. The counters are cumulative: run it
   twice, with the load between, and import both results.

     sqlcmd -S SERVER -d master -i weir.sql -s "," -W -o before.csv
     sqlcmd -S SERVER -d master -i weir.sql -s "," -W -o after.csv
     weir observe import before.csv after.csv --out server.weirobs */
SET NOCOUNT ON;

/* 5 is Azure SQL Database, 8 is Azure SQL Managed Instance. */
DECLARE @edition int = CAST(SERVERPROPERTY('EngineEdition') AS int);
DECLARE @columns nvarchar(max), @query nvarchar(max);
/* One time for all, so that they are one sample. */
DECLARE @now datetime2(7) = SYSUTCDATETIME();

/* Waits: all that there were, and those of storage even if there were none. */
SET @query = N'SELECT @now AS collection_time_utc, wait_type, waiting_tasks_count, wait_time_ms,
    max_wait_time_ms, signal_wait_time_ms
' + CASE @edition WHEN 5 THEN N'FROM sys.dm_db_wait_stats' ELSE N'FROM sys.dm_os_wait_stats' END + N'
WHERE waiting_tasks_count > 0 OR wait_type IN (N''PAGEIOLATCH_SH'', N''PAGEIOLATCH_EX'', N''PAGEIOLATCH_UP'',
    N''WRITELOG'', N''LOGBUFFER'', N''IO_COMPLETION'', N''ASYNC_IO_COMPLETION'', N''BACKUPIO'', N''IO_QUEUE_LIMIT'',
    N''LOG_RATE_GOVERNOR'', N''INSTANCE_LOG_RATE_GOVERNOR'', N''POOL_LOG_RATE_GOVERNOR'',
    N''HADR_THROTTLE_LOG_RATE_GOVERNOR'', N''SLEEP_BUFFERPOOL_HELPLW'')
ORDER BY wait_time_ms DESC;';
EXEC sys.sp_executesql @query, N'@now datetime2(7)', @now = @now;

/* Files: what was read and written, how long that took, and what of it was waited in queues of the
   governor; sizes as sys.master_files has them. */
SET @query = N'SELECT @now AS collection_time_utc, DB_NAME(s.database_id) AS database_name, f.name AS file_name,
    s.file_id, f.type_desc, f.physical_name, f.size AS size_pages, f.max_size, f.growth, f.is_percent_growth,
    s.num_of_reads, s.num_of_bytes_read, s.io_stall_read_ms, s.io_stall_queued_read_ms,
    s.num_of_writes, s.num_of_bytes_written, s.io_stall_write_ms, s.io_stall_queued_write_ms,
    s.size_on_disk_bytes ' + CASE @edition
    WHEN 5 THEN N'FROM sys.dm_io_virtual_file_stats(DB_ID(), NULL) AS s
        INNER JOIN sys.database_files AS f ON f.file_id = s.file_id;'
    ELSE N'FROM sys.dm_io_virtual_file_stats(NULL, NULL) AS s
        LEFT JOIN sys.master_files AS f ON f.database_id = s.database_id AND f.file_id = s.file_id;' END;
EXEC sys.sp_executesql @query, N'@now datetime2(7)', @now = @now;

/* Performance counters. Those a second are cumulative in this view; cntr_type says which. In Azure
   their instances are ids of databases. */
SET @query = N'SELECT @now AS collection_time_utc, RTRIM(c.object_name) AS object_name,
    RTRIM(c.counter_name) AS counter_name, '
    + CASE WHEN @edition IN (5, 8) THEN N'COALESCE(d.name, RTRIM(c.instance_name))' ELSE N'RTRIM(c.instance_name)' END
    + N' AS instance_name, c.cntr_value, c.cntr_type
FROM sys.dm_os_performance_counters AS c '
    + CASE WHEN @edition IN (5, 8) THEN N'LEFT JOIN sys.databases AS d ON d.name <> N''master''
    AND d.physical_database_name = LEFT(RTRIM(c.instance_name), 36) ' ELSE N'' END
    + N'WHERE c.object_name LIKE N''%:Databases%'' AND c.counter_name IN (N''Transactions/sec'',
        N''Log Bytes Flushed/sec'', N''Log Flushes/sec'', N''Log Flush Waits/sec'')
    OR c.object_name LIKE N''%:Buffer Manager%'' AND c.counter_name IN (N''Page life expectancy'',
        N''Buffer cache hit ratio'', N''Buffer cache hit ratio base'', N''Page lookups/sec'', N''Page reads/sec'',
        N''Page writes/sec'', N''Readahead pages/sec'', N''Checkpoint pages/sec'', N''Background writer pages/sec'',
        N''Lazy writes/sec'')
    OR c.object_name LIKE N''%:SQL Statistics%'' AND c.counter_name = N''Batch Requests/sec''
    OR c.object_name LIKE N''%:General Statistics%'' AND c.counter_name = N''User Connections''
    OR c.object_name LIKE N''%:Memory Manager%'' AND c.counter_name IN (N''Total Server Memory (KB)'',
        N''Target Server Memory (KB)'', N''Database Cache Memory (KB)'');';
EXEC sys.sp_executesql @query, N'@now datetime2(7)', @now = @now;

/* Limits of the resource governor, where there are any: of an instance, and of databases. */
IF @edition IN (5, 8) AND OBJECT_ID(N'sys.dm_instance_resource_governance') IS NOT NULL
BEGIN
    SET @columns = (SELECT N', g.' + QUOTENAME(a.name) FROM sys.all_columns AS a
        WHERE a.object_id = OBJECT_ID(N'sys.dm_instance_resource_governance')
            AND a.name IN (N'instance_max_log_rate', N'instance_max_worker_threads', N'volume_local_iops',
                N'volume_managed_xstore_iops', N'volume_external_xstore_iops', N'volume_type_local_iops',
                N'volume_type_managed_xstore_iops', N'volume_type_external_xstore_iops', N'volume_pfs_iops',
                N'volume_type_pfs_iops', N'user_data_directory_space_quota_mb')
        ORDER BY a.column_id FOR XML PATH(''));
    SET @query = N'SELECT @now AS collection_time_utc' + @columns
        + N' FROM sys.dm_instance_resource_governance AS g;';
    EXEC sys.sp_executesql @query, N'@now datetime2(7)', @now = @now;
END;
IF @edition IN (5, 8) AND OBJECT_ID(N'sys.dm_user_db_resource_governance') IS NOT NULL
BEGIN
    SET @columns = (SELECT N', g.' + QUOTENAME(a.name) FROM sys.all_columns AS a
        WHERE a.object_id = OBJECT_ID(N'sys.dm_user_db_resource_governance')
            AND a.name IN (N'database_name', N'slo_name', N'dtu_limit', N'cpu_limit', N'max_db_max_size_in_mb',
                N'primary_group_max_io', N'primary_max_log_rate', N'pool_max_io', N'instance_max_log_rate',
                N'instance_max_worker_threads', N'volume_local_iops', N'volume_managed_xstore_iops',
                N'volume_external_xstore_iops', N'volume_type_local_iops', N'volume_type_managed_xstore_iops',
                N'volume_type_external_xstore_iops', N'volume_pfs_iops', N'volume_type_pfs_iops',
                N'user_data_directory_space_quota_mb')
        ORDER BY a.column_id FOR XML PATH(''));
    SET @query = N'SELECT @now AS collection_time_utc' + @columns
        + N' FROM sys.dm_user_db_resource_governance AS g;';
    EXEC sys.sp_executesql @query, N'@now datetime2(7)', @now = @now;
END;
