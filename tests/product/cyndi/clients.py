"""Two clients for Kafka Connect that others wrote, against the addresses that are given: one that leads, and another worker."""

import json
import sys
import time

from kafka_connect.kafka_connect import KafkaConnect
from kafkaconnect.connect import Connect
from requests.exceptions import HTTPError

leader, follower = sys.argv[1:]
SINK = "io.confluent.connect.jdbc.JdbcSinkConnector"
CONFIG = {
    "connector.class": SINK,
    "tasks.max": 2,
    "topics": "hosts",
    "batch.size": 10,
    "connection.url": "jdbc:postgresql://127.0.0.1:1/none?sslmode=disable",
    "connection.attempts": 1,
}


def until(what, look):
    """What `look` answers once that is something."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            found = look()
        except HTTPError as error:
            # A rebalance, or a worker that has not read of it yet.
            assert error.response is None or error.response.status_code in (404, 409), error
            found = None
        if found:
            return found
    raise SystemExit(f"gave up waiting: {what}")


def refused(code, work):
    try:
        work()
    except HTTPError as error:
        answer = error.response
        assert answer is not None and answer.status_code == code, (code, answer)
        assert answer.json()["error_code"] == code, answer.text
        return answer.json()["message"]
    raise SystemExit(f"not refused with {code}")


def first():
    client = KafkaConnect(url=leader)
    other = KafkaConnect(url=follower)
    assert set(client.get_cluster_info()) == {"version", "commit", "kafka_cluster_id"}
    assert client.list_connectors() == []
    assert [plugin["class"] for plugin in client.list_connector_plugins()] == [SINK]

    made = client.create_connector({"name": "a", "config": CONFIG})
    assert (made["name"], made["type"], made["config"]["tasks.max"]) == ("a", "sink", "2"), made
    again = until("no longer rebalancing", lambda: conflict(lambda: client.create_connector({"name": "a", "config": CONFIG})))
    assert again == "Connector a already exists", again
    until("read of by others", lambda: other.list_connectors() == ["a"])

    status = until("begun with", lambda: other.get_connector_status("a"))
    assert set(status) == {"name", "connector", "tasks", "type"} and status["type"] == "sink", status
    assert set(status["connector"]) >= {"state", "worker_id"}, status
    # Nobody is at its database: the tasks fail, with a trace, and the connector does not.
    failed = lambda: [task for task in client.get_connector_status("a")["tasks"] if task["state"] == "FAILED"]
    until("both tasks fail", lambda: len(failed()) == 2)
    assert [task["id"] for task in failed()] == [0, 1]
    assert all("Caused by:" in task["trace"] for task in failed())
    assert client.get_connector_status("a")["connector"]["state"] == "RUNNING"
    assert client.get_connector_task_status("a", 1)["state"] == "FAILED"

    answer = client.restart_connector("a", include_tasks="true", only_failed="true")
    assert {task["state"] for task in answer["tasks"]} == {"RESTARTING"}, answer
    until("they fail again", lambda: len(failed()) == 2)
    client.restart_connector_task("a", 0)
    assert client.restart_connector("a", include_tasks="false", only_failed="false") is None

    expanded = until("expanded", lambda: client.list_connectors(expand="status").get("a"))
    assert expanded["status"]["name"] == "a"
    assert client.list_connectors(expand="info")["a"]["info"]["config"]["topics"] == "hosts"
    assert client.list_connectors(pattern="b.*") == []
    assert client.list_connectors(state="running") == ["a"]
    tasks = until("tasks", lambda: client.list_connector_tasks("a"))
    assert [task["id"] for task in tasks] == [{"connector": "a", "task": 0}, {"connector": "a", "task": 1}]
    assert client.list_connector_topics("a") == {"a": {"topics": ["hosts"]}}

    for verb, state in [("pause", "PAUSED"), ("stop", "STOPPED"), ("resume", "RUNNING")]:
        until(verb, lambda: getattr(client, f"{verb}_connector")("a") is None)
        until(state, lambda: client.get_connector_status("a")["connector"]["state"] == state)
    until("tasks again", lambda: len(client.get_connector_status("a")["tasks"]) == 2)

    changed = until("changed", lambda: client.update_connector("a", {**CONFIG, "topics": "more"}))
    assert changed["config"]["topics"] == "more" and changed["config"]["name"] == "a"
    until("known to others", lambda: other.get_connector_config("a")["topics"] == "more")
    wrong = {**CONFIG, "batch.size": "many", "insert.mode": "sometimes"}
    words = refused(400, lambda: client.update_connector("a", wrong))
    assert words.startswith("Connector configuration is invalid and contains the following 2 error(s):\n"), words
    assert client.validate_connector_config(SINK, wrong)["error_count"] == 2
    words = refused(400, lambda: client.update_connector("a", {**CONFIG, "name": "b"}))
    assert "doesn't match connector name in the URL" in words, words
    words = refused(500, lambda: client.update_connector("a", {**CONFIG, "connector.class": "none.Such"}))
    assert words.startswith("Failed to find any class that implements Connector"), words

    until("deleted", lambda: client.delete_connector("a") is None)
    until("no longer rebalancing", lambda: gone(lambda: client.get_connector("a"), "Connector a not found"))
    # The worker that runs a connector takes its status back, once it has read that the connector is gone.
    until("nobody's status", lambda: gone(lambda: client.get_connector_status("a"), "No status found for connector a"))
    assert client.list_connectors() == []


def conflict(work):
    """The words of a conflict that is no rebalance."""
    words = refused(409, work)
    return None if words.startswith("Cannot complete request") else words


def gone(work, words):
    """Whether there is nothing there, said in these words."""
    try:
        work()
    except HTTPError as error:
        return error.response.status_code == 404 and error.response.json()["message"] == words
    return False


def second():
    client = Connect(connect_url=follower)
    in_work = "Kafka cluster rebalance is in process."

    def answered(work):
        def look():
            answer = work()
            return None if answer == in_work or answer.endswith("not found.") else (answer or "nothing")

        return until("answered", look)

    assert json.loads(client.plugins())[0]["type"] == "sink"
    made = json.loads(answered(lambda: client.validate_and_create("b", json.dumps(CONFIG))))
    assert made["name"] == "b", made
    assert json.loads(until("listed", lambda: client.list() if "b" in client.list() else None)) == ["b"]
    assert json.loads(answered(lambda: client.status("b")))["name"] == "b"
    assert json.loads(answered(lambda: client.info("b")))["type"] == "sink"
    assert json.loads(answered(lambda: client.config("b")))["tasks.max"] == "2"
    assert len(json.loads(until("tasks", lambda: None if len(answered(lambda: client.tasks("b"))) < 3 else client.tasks("b")))) == 2
    assert json.loads(answered(lambda: client.topics("b"))) == {"b": {"topics": ["hosts"]}}
    for verb in (client.pause, client.resume, client.restart):
        assert answered(lambda: verb("b")) == "nothing"
    complaints = json.loads(client.validate_and_create("b", json.dumps({**CONFIG, "tasks.max": 0})))
    assert complaints["error_count"] == 1, complaints
    assert answered(lambda: client.remove("b")) == "nothing"
    until("gone", lambda: client.status("b").endswith("not found."))
    assert json.loads(until("listed", lambda: client.list() if "b" not in client.list() else None)) == []


first()
second()
print("both clients are content")
