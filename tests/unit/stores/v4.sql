PRAGMA application_id = 1181964407;
PRAGMA user_version = 4;
BEGIN TRANSACTION;
CREATE TABLE failures (
        number INTEGER PRIMARY KEY AUTOINCREMENT, walk TEXT NOT NULL, at REAL NOT NULL, path BLOB NOT NULL,
        outcome TEXT NOT NULL, reason TEXT NOT NULL, errno INTEGER NOT NULL, flags INTEGER, attempts INTEGER NOT NULL,
        detail TEXT NOT NULL
    , size INTEGER NOT NULL DEFAULT 0, in_flight INTEGER NOT NULL DEFAULT 0);
INSERT INTO "failures" VALUES(1,'1',150.0,X'2F6673782F78','failed','restore_failed',5,13,3,'why',4096,1);
CREATE TABLE jobs (
        id INTEGER PRIMARY KEY AUTOINCREMENT, phase TEXT NOT NULL, ended REAL, walk TEXT NOT NULL, body TEXT NOT NULL
    );
INSERT INTO "jobs" VALUES(1,'done',200.0,'1','{"kind":"preload","uid":1000,"gids":[1000,50],"paths":["/fsx/a","/fsx/\udcff b"],"include":["*.bin"],"exclude":["tmp/**"],"options":{"ready":0.2,"deadline":60.0,"fit":true,"order":"largest","used_before":null,"dry_run":false,"every":3600.0,"check_s3":"auto"},"priority":70,"label":"\u00e9preuve","slurm_job_id":"4711","admin":false,"created":100.0,"phase":"done","listed":2,"digest":"4bdad8be6fa41294e22ab03e0c0144f6","started":null,"ended":200.0,"ready":false,"exit":3,"error":"","counters":{"found":[2,20],"resident":[0,0],"restored":[1,10],"failed":[1,10],"blocked":[0,0],"vanished":[0,0],"cancelled":[0,0],"released":[0,0],"already":[0,0],"left":[0,0],"left_in_flight":[0,0],"unreadable":0,"skipped":0,"scanned":true,"reasons":{"restore_failed":1}},"walk":"1","rounds":0,"resumed":0,"next_round":null}');
INSERT INTO "jobs" VALUES(2,'running',NULL,'2','{"kind":"preload","uid":1000,"gids":[1000,50],"paths":["/fsx/a","/fsx/\udcff b"],"include":["*.bin"],"exclude":["tmp/**"],"options":{"ready":0.2,"deadline":60.0,"fit":true,"order":"largest","used_before":null,"dry_run":false,"every":3600.0,"check_s3":"auto"},"priority":70,"label":"\u00e9preuve","slurm_job_id":"4711","admin":false,"created":101.0,"phase":"running","listed":2,"digest":"4bdad8be6fa41294e22ab03e0c0144f6","started":102.0,"ended":null,"ready":false,"exit":null,"error":"","counters":{"found":[0,0],"resident":[0,0],"restored":[0,0],"failed":[0,0],"blocked":[0,0],"vanished":[0,0],"cancelled":[0,0],"released":[0,0],"already":[0,0],"left":[0,0],"left_in_flight":[0,0],"unreadable":0,"skipped":0,"scanned":false,"reasons":{}},"walk":"2","rounds":0,"resumed":0,"next_round":null}');
CREATE TABLE leases (
        id INTEGER PRIMARY KEY AUTOINCREMENT, owner INTEGER NOT NULL, path BLOB NOT NULL, created REAL NOT NULL,
        expires REAL NOT NULL, label TEXT NOT NULL, slurm_job_id TEXT NOT NULL
    );
INSERT INTO "leases" VALUES(1,1000,X'2F6673782FFF',1.0,100.0,'train','7');
CREATE TABLE lists (
        job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE, files BLOB NOT NULL
    );
INSERT INTO "lists" VALUES(1,X'7801D34F2BAED0CFC92C2ED13764D087B3FF01005D2A0864');
INSERT INTO "lists" VALUES(2,X'7801D34F2BAED0CFC92C2ED13764D087B3FF01005D2A0864');
CREATE TABLE restored (at REAL NOT NULL, files BLOB NOT NULL);
INSERT INTO "restored" VALUES(150.0,X'0C00000000000000');
CREATE TABLE scans (path BLOB PRIMARY KEY, state TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE totals (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "totals" VALUES('restored_files',1);
CREATE TABLE wanted (path BLOB PRIMARY KEY, at REAL NOT NULL) WITHOUT ROWID;
INSERT INTO "wanted" VALUES(X'2F6673782F61',200.0);
CREATE INDEX failures_by_walk ON failures (walk, number);
CREATE INDEX restored_by_time ON restored (at);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('jobs',2);
INSERT INTO "sqlite_sequence" VALUES('failures',1);
INSERT INTO "sqlite_sequence" VALUES('leases',1);
COMMIT;
