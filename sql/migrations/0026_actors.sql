-- 0026_actors: who made or changed a queue, a type or a gate, started a DAG or sent a webhook.

-- Replaced by functions that also take the name of who calls.
drop function if exists treadle.define_queue(text, jsonb);
drop function if exists treadle.define_type(text, jsonb);
drop function if exists treadle.define_gate(text, jsonb);
drop function if exists treadle.start_dag(uuid);
drop function if exists treadle.receive_webhook(text, jsonb, jsonb, text);
