BEGIN TRANSACTION;
CREATE TABLE datasets (
    name TEXT PRIMARY KEY NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    neighbours TEXT NOT NULL,
    unit TEXT NOT NULL,
    at TEXT NOT NULL
);
INSERT INTO "datasets" VALUES('voided after a draw',2.0,1.0e-05,'add_remove','row','2026-11-18T00:30:58+00:00');
INSERT INTO "datasets" VALUES('voided before any draw',2.0,1.0e-05,'add_remove','row','2026-11-18T00:30:58+00:00');
INSERT INTO "datasets" VALUES('voided after an earlier draw',2.0,1.0e-05,'add_remove','row','2026-11-18T00:30:58+00:00');
INSERT INTO "datasets" VALUES('still reserved',2.0,1.0e-05,'add_remove','row','2026-11-18T00:30:58+00:00');
CREATE TABLE events (
    number INTEGER PRIMARY KEY,
    spend TEXT NOT NULL REFERENCES spends (id),
    kind TEXT NOT NULL CHECK (kind IN ('drawn', 'released', 'voided')),
    detail TEXT NOT NULL,
    at TEXT NOT NULL
);
INSERT INTO "events" VALUES(1,'be836ea4423cae268c17ee2761154a97','drawn','','2026-11-18T00:30:59+00:00');
INSERT INTO "events" VALUES(2,'9591abaa99943f26f58785a0675e05e8','voided','','2026-11-18T00:30:59+00:00');
INSERT INTO "events" VALUES(3,'17445886b3a368056a1dec1917d189f6','voided','','2026-11-18T00:30:59+00:00');
INSERT INTO "events" VALUES(4,'ac827777ebbda3cebb0f6a6725dbbc85','drawn','','2026-11-18T00:30:59+00:00');
INSERT INTO "events" VALUES(5,'c4f3c07ecf73ae745cdf9fe39be01cb9','drawn','','2026-11-18T00:30:59+00:00');
INSERT INTO "events" VALUES(6,'56a3a6c75979ce8ebb25066081ba8867','voided','','2026-11-18T00:30:59+00:00');
INSERT INTO "events" VALUES(7,'df782f09571a624293b2568af3fbfaf2','drawn','','2026-11-18T00:30:59+00:00');
CREATE TABLE limits (
    dataset TEXT NOT NULL REFERENCES datasets (name),
    analyst TEXT NOT NULL,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    at TEXT NOT NULL,
    PRIMARY KEY (dataset, analyst)
);
INSERT INTO "limits" VALUES('voided after a draw','eve',1.0,1.0e-05,'2026-11-18T00:30:58+00:00');
CREATE TABLE spends (
    number INTEGER PRIMARY KEY,
    id TEXT UNIQUE NOT NULL,
    dataset TEXT NOT NULL REFERENCES datasets (name),
    analyst TEXT,
    receipt TEXT NOT NULL,
    delta REAL NOT NULL,
    square REAL NOT NULL,  -- this and the next two follow from the receipt, to be added up quickly
    tail REAL NOT NULL,
    loss REAL NOT NULL,
    at TEXT NOT NULL
);
INSERT INTO "spends" VALUES(1,'9591abaa99943f26f58785a0675e05e8','voided after a draw','eve','{"id": "9591abaa99943f26f58785a0675e05e8", "mechanisms": [{"mechanism": {"kind": "gaussian", "sigma": 8.057618480729294, "sensitivity": 1.0, "neighbours": "add_remove"}, "count": 1}], "neighbours": "add_remove", "unit": "row", "scope": "a test", "source": "SystemEntropy()", "private": true}',1.0e-06,1.54023362271714110011e-02,0.0,9e999,'2026-11-18T00:30:58+00:00');
INSERT INTO "spends" VALUES(2,'be836ea4423cae268c17ee2761154a97','voided after a draw',NULL,'{"id": "be836ea4423cae268c17ee2761154a97", "mechanisms": [{"mechanism": {"kind": "gaussian", "sigma": 15.409813856941698, "sensitivity": 1.0, "neighbours": "add_remove"}, "count": 1}], "neighbours": "add_remove", "unit": "row", "scope": "a test", "source": "SystemEntropy()", "private": true}',1.0e-06,4.21119366842706826375e-03,0.0,9e999,'2026-11-18T00:30:58+00:00');
INSERT INTO "spends" VALUES(3,'17445886b3a368056a1dec1917d189f6','voided before any draw',NULL,'{"id": "17445886b3a368056a1dec1917d189f6", "mechanisms": [{"mechanism": {"kind": "gaussian", "sigma": 8.057618480729294, "sensitivity": 1.0, "neighbours": "add_remove"}, "count": 1}], "neighbours": "add_remove", "unit": "row", "scope": "a test", "source": "SystemEntropy()", "private": true}',1.0e-06,1.54023362271714110011e-02,0.0,9e999,'2026-11-18T00:30:59+00:00');
INSERT INTO "spends" VALUES(4,'ac827777ebbda3cebb0f6a6725dbbc85','voided before any draw',NULL,'{"id": "ac827777ebbda3cebb0f6a6725dbbc85", "mechanisms": [{"mechanism": {"kind": "gaussian", "sigma": 15.409813856941698, "sensitivity": 1.0, "neighbours": "add_remove"}, "count": 1}], "neighbours": "add_remove", "unit": "row", "scope": "a test", "source": "SystemEntropy()", "private": true}',1.0e-06,4.21119366842706826375e-03,0.0,9e999,'2026-11-18T00:30:59+00:00');
INSERT INTO "spends" VALUES(5,'c4f3c07ecf73ae745cdf9fe39be01cb9','voided after an earlier draw',NULL,'{"id": "c4f3c07ecf73ae745cdf9fe39be01cb9", "mechanisms": [{"mechanism": {"kind": "gaussian", "sigma": 15.409813856941698, "sensitivity": 1.0, "neighbours": "add_remove"}, "count": 1}], "neighbours": "add_remove", "unit": "row", "scope": "a test", "source": "SystemEntropy()", "private": true}',1.0e-06,4.21119366842706826375e-03,0.0,9e999,'2026-11-18T00:30:59+00:00');
INSERT INTO "spends" VALUES(6,'56a3a6c75979ce8ebb25066081ba8867','voided after an earlier draw',NULL,'{"id": "56a3a6c75979ce8ebb25066081ba8867", "mechanisms": [{"mechanism": {"kind": "gaussian", "sigma": 8.057618480729294, "sensitivity": 1.0, "neighbours": "add_remove"}, "count": 1}], "neighbours": "add_remove", "unit": "row", "scope": "a test", "source": "SystemEntropy()", "private": true}',1.0e-06,1.54023362271714110011e-02,0.0,9e999,'2026-11-18T00:30:59+00:00');
INSERT INTO "spends" VALUES(7,'36ddbbf44b9fac8760972dc8b1977c44','still reserved',NULL,'{"id": "36ddbbf44b9fac8760972dc8b1977c44", "mechanisms": [{"mechanism": {"kind": "gaussian", "sigma": 8.057618480729294, "sensitivity": 1.0, "neighbours": "add_remove"}, "count": 1}], "neighbours": "add_remove", "unit": "row", "scope": "a test", "source": "SystemEntropy()", "private": true}',1.0e-06,1.54023362271714110011e-02,0.0,9e999,'2026-11-18T00:30:59+00:00');
INSERT INTO "spends" VALUES(8,'df782f09571a624293b2568af3fbfaf2','still reserved',NULL,'{"id": "df782f09571a624293b2568af3fbfaf2", "mechanisms": [{"mechanism": {"kind": "gaussian", "sigma": 15.409813856941698, "sensitivity": 1.0, "neighbours": "add_remove"}, "count": 1}], "neighbours": "add_remove", "unit": "row", "scope": "a test", "source": "SystemEntropy()", "private": true}',1.0e-06,4.21119366842706826375e-03,0.0,9e999,'2026-11-18T00:30:59+00:00');
CREATE INDEX spends_of_a_dataset ON spends (dataset);
CREATE INDEX events_of_a_spend ON events (spend);
CREATE UNIQUE INDEX drawn_or_voided ON events (spend) WHERE kind IN ('drawn', 'voided');
CREATE TRIGGER datasets_UPDATE BEFORE UPDATE ON datasets 
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER datasets_DELETE BEFORE DELETE ON datasets 
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER datasets_INSERT BEFORE INSERT ON datasets WHEN EXISTS (SELECT 1 FROM datasets WHERE name = NEW.name)
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER limits_UPDATE BEFORE UPDATE ON limits 
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER limits_DELETE BEFORE DELETE ON limits 
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER limits_INSERT BEFORE INSERT ON limits WHEN EXISTS (SELECT 1 FROM limits WHERE dataset = NEW.dataset AND analyst = NEW.analyst)
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER spends_UPDATE BEFORE UPDATE ON spends 
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER spends_DELETE BEFORE DELETE ON spends 
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER spends_INSERT BEFORE INSERT ON spends WHEN EXISTS (SELECT 1 FROM spends WHERE id = NEW.id OR number = NEW.number)
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER events_UPDATE BEFORE UPDATE ON events 
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER events_DELETE BEFORE DELETE ON events 
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
CREATE TRIGGER events_INSERT BEFORE INSERT ON events WHEN EXISTS (SELECT 1 FROM events WHERE number = NEW.number OR spend = NEW.spend AND kind <> 'released' AND NEW.kind <> 'released')
BEGIN SELECT RAISE(ABORT, 'a ledger is only ever added to'); END;
COMMIT;
