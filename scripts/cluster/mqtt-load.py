# Publishes and subscribes over MQTT at the nodes of a cluster, for scripts/mqtt-cluster-kills.sh: mqtt-load.py QOS PORT...
# Prints how many messages were acknowledged, and the node of each client; ends when its input ends.
import collections, sys, threading, time
import paho.mqtt.client as mqtt
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

qos, ports = int(sys.argv[1]), [int(port) for port in sys.argv[2:]]
got, acknowledged, published, absent = collections.Counter(), 0, 0, 0
lock, ready, stop = threading.Lock(), threading.Event(), threading.Event()


def say(*words):
    print(*words, flush=True)


class Client(mqtt.Client):
    # When two attempts to connect have failed, paho 2 publishes a message again for which it has received PUBREC, against
    # [MQTT-4.4.0-1].
    def _messages_reconnect_reset_out(self):
        released = [m for m in self._out_messages.values() if m.state == mqtt.mqtt_ms_resend_pubrel]
        super()._messages_reconnect_reset_out()
        for m in released:
            m.state = mqtt.mqtt_ms_resend_pubrel


def make(name, node):
    client = Client(mqtt.CallbackAPIVersion.VERSION2, client_id=name, protocol=mqtt.MQTTv5)
    client.reconnect_delay_set(0.05, 0.2)
    client.max_inflight_messages_set(16)
    client.max_queued_messages_set(0)
    client.node = node
    client.was_there = False

    def connected(_, user, flags, reason, properties):
        global absent
        say(name, client.node)
        if reason.is_failure:
            return
        if client.was_there and not flags.session_present:
            absent += 1
            say("absent", name, client.node)
        if not client.was_there and name == "reader":
            client.subscribe("load/+", qos)
        client.was_there = True

    def elsewhere(*_):
        # Connects to the next node, in all cases.
        client.node = (client.node + 1) % len(ports)
        client._port = ports[client.node]

    client.on_connect, client.on_disconnect, client.on_connect_fail = connected, elsewhere, elsewhere
    properties = Properties(PacketTypes.CONNECT)
    properties.SessionExpiryInterval = 3600
    client.connect("127.0.0.1", ports[node], 5, clean_start=mqtt.MQTT_CLEAN_START_FIRST_ONLY, properties=properties)
    client.loop_start()
    return client


def message(client, user, m):
    with lock:
        got[int(m.payload)] += 1


def done(client, user, mid, reason, properties):
    global acknowledged
    if reason is not None and reason.is_failure:
        say("refused", mid, reason)
    acknowledged += 1
    if acknowledged % 10 == 0:
        say("acknowledged", acknowledged)


reader = make("reader", 1)
reader.on_message = message
reader.on_subscribe = lambda *_: ready.set()
assert ready.wait(60), "the subscription wasn't answered"
writer = make("writer", 0)
writer.on_publish = done
say("acknowledged 0")
say("ready 1")


def halt():
    sys.stdin.readline()
    stop.set()


threading.Thread(target=halt, daemon=True).start()
while not stop.is_set():
    if published - acknowledged < 100:
        writer.publish("load/%d" % (published % 3), str(published), qos)
        published += 1
        time.sleep(0.002)
    else:
        time.sleep(0.001)
limit = time.time() + 120
while time.time() < limit and (acknowledged < published or len(got) < published):
    time.sleep(0.05)
time.sleep(1)
lost = published - len(got)
twice = sum(1 for n in got.values() if n > 1)
say("published", published, "acknowledged", acknowledged, "lost", lost, "twice", twice, "absent", absent)
sys.exit(0 if lost == 0 and absent == 0 and acknowledged == published and (qos < 2 or twice == 0) else 1)
