BEGIN TRANSACTION;
CREATE TABLE agent_messages (
                id INTEGER PRIMARY KEY AUTOINCREMENT,
                session_id TEXT NOT NULL,
                message_data TEXT NOT NULL,
                created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
                FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id)
                    ON DELETE CASCADE
            );
INSERT INTO "agent_messages" VALUES(1,'demo-session-responses','{"content":"Check the history [[par]]","role":"user"}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(2,'demo-session-responses','{"id":"msg_e08616c4105849158bc355ba","content":[{"annotations":[],"text":"Looking at history and the test together.","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(3,'demo-session-responses','{"arguments":"{\"command\": \"git log --oneline | head -3\"}","call_id":"call_920c6fd68c414fc2845a1e67","name":"bash","type":"function_call","id":"fc_8ab91eafb54c4251b7464455","status":"completed"}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(4,'demo-session-responses','{"call_id":"call_920c6fd68c414fc2845a1e67","output":"52c91da initial\n","type":"function_call_output"}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(5,'demo-session-responses','{"id":"msg_de4fe84f463e48c68fd7f0ad","content":[{"annotations":[],"text":"One commit so far; the test asserts add(2, 3) == 5.","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(6,'demo-session-responses','{"content":"Plain follow up","role":"user"}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(7,'demo-session-responses','{"id":"msg_a56a61790afd4b1e8457edc2","content":[{"annotations":[],"text":"One commit so far; the test asserts add(2, 3) == 5.","type":"output_text"}],"role":"assistant","status":"completed","type":"message"}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(8,'demo-session-chat','{"content":"Check the history [[par]]","role":"user"}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(9,'demo-session-chat','{"id":"__fake_id__","content":[{"annotations":[],"text":"Looking at history and the test together.","type":"output_text","logprobs":[]}],"role":"assistant","status":"completed","type":"message","provider_data":{"model":"mock-model","response_id":"chatcmpl-7efc7d2c42b94176bd37a08f"}}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(10,'demo-session-chat','{"arguments":"{\"command\": \"git log --oneline | head -3\"}","call_id":"call_bbc6a03c1fd94a40992749d4","name":"bash","type":"function_call","id":"__fake_id__","provider_data":{"model":"mock-model","response_id":"chatcmpl-7efc7d2c42b94176bd37a08f"}}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(11,'demo-session-chat','{"call_id":"call_bbc6a03c1fd94a40992749d4","output":"52c91da initial\n","type":"function_call_output"}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(12,'demo-session-chat','{"id":"__fake_id__","content":[{"annotations":[],"text":"One commit so far; the test asserts add(2, 3) == 5.","type":"output_text","logprobs":[]}],"role":"assistant","status":"completed","type":"message","provider_data":{"model":"mock-model","response_id":"chatcmpl-fec8bbecb20548c497a6b13c"}}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(13,'demo-session-chat','{"content":"Plain follow up","role":"user"}','2026-11-29 12:23:20');
INSERT INTO "agent_messages" VALUES(14,'demo-session-chat','{"id":"__fake_id__","content":[{"annotations":[],"text":"One commit so far; the test asserts add(2, 3) == 5.","type":"output_text","logprobs":[]}],"role":"assistant","status":"completed","type":"message","provider_data":{"model":"mock-model","response_id":"chatcmpl-8566bbfcd17b4839870c9e40"}}','2026-11-29 12:23:20');
CREATE TABLE agent_sessions (
                session_id TEXT PRIMARY KEY,
                created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
                updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
            );
INSERT INTO "agent_sessions" VALUES('demo-session-responses','2026-11-29 12:23:20','2026-11-29 12:23:20');
INSERT INTO "agent_sessions" VALUES('demo-session-chat','2026-11-29 12:23:20','2026-11-29 12:23:20');
CREATE INDEX idx_agent_messages_session_id
            ON agent_messages (session_id, id)
        ;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('agent_messages',14);
COMMIT;
