/* What SQL Server says of its storage, for weir observe import.

   It reads views of the system and changes nothing: no counter is cleared, no table is made. It needs
   VIEW SERVER STATE (SQL Server 2022 and newer: VIEW SERVER PERFORMANCE STATE; Azure SQL Database:
   VIEW DATABASE STATE). Runs on SQL Server 2014 and newer, Azure SQL Database and Azure SQL Managed
   Instance. The counters are cumulative: run it twice, with the load between, and import both results.

     sqlcmd -S SERVER -d master -i weir.sql -s "," -W -o before.csv
     sqlcmd -S SERVER -d master -i weir.sql -s "," -W -o after.csv
     weir observe import before.csv after.csv --out server.weirobs */
SET NOCOUNT ON;

/* Files: what was read and written, how long that took, and what of it was waited in queues of the governor. */
IF CAST(SERVERPROPERTY('EngineEdition') AS int) = 5
    SELECT SYSUTCDATETIME() AS collection_time_utc, DB_NAME(s.database_id) AS database_name, f.name AS file_name,
        s.file_id, f.type_desc, f.physical_name, f.size AS size_pages, f.max_size, f.growth, f.is_percent_growth,
        s.num_of_reads, s.num_of_bytes_read, s.io_stall_read_ms, s.io_stall_queued_read_ms,
        s.num_of_writes, s.num_of_bytes_written, s.io_stall_write_ms, s.io_stall_queued_write_ms,
        s.size_on_disk_bytes
    FROM sys.dm_io_virtual_file_stats(DB_ID(), NULL) AS s
    INNER JOIN sys.database_files AS f ON f.file_id = s.file_id;
ELSE
    EXEC sys.sp_executesql N'SELECT SYSUTCDATETIME() AS collection_time_utc, DB_NAME(s.database_id) AS database_name, f.name AS file_name,
        s.file_id, f.type_desc, f.physical_name, f.size AS size_pages, f.max_size, f.growth, f.is_percent_growth,
        s.num_of_reads, s.num_of_bytes_read, s.io_stall_read_ms, s.io_stall_queued_read_ms,
        s.num_of_writes, s.num_of_bytes_written, s.io_stall_write_ms, s.io_stall_queued_write_ms,
        s.size_on_disk_bytes
    FROM sys.dm_io_virtual_file_stats(NULL, NULL) AS s
    LEFT JOIN sys.master_files AS f ON f.database_id = s.database_id AND f.file_id = s.file_id;';

/* Waits. */
SELECT SYSUTCDATETIME() AS collection_time_utc, wait_type, waiting_tasks_count, wait_time_ms, max_wait_time_ms,
    signal_wait_time_ms
FROM sys.dm_os_wait_stats
WHERE waiting_tasks_count > 0
ORDER BY wait_time_ms DESC;
