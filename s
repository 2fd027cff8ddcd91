/work/wt/attach/memtrace-attachee-12932: recording begins in process 12932
