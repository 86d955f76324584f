/// A paho client for MQTT 5, in Python, with functions that wait for events.
enum PahoClient {
  /// The code placed before a program.
  static let prelude = """
    import os, queue, socket, subprocess, time
    import paho.mqtt.client as mqtt
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.properties import Properties
    from paho.mqtt.subscribeoptions import SubscribeOptions

    def properties(kind, values):
        made = Properties(kind)
        for name, value in values.items(): setattr(made, name, value)
        return made

    def sluice(*words, lines=""):
        return subprocess.run([os.environ["SLUICE"], *words], input=lines, text=True, stdout=subprocess.PIPE, check=True).stdout

    class Client(mqtt.Client):
        # Properties of CONNECT are named arguments, as are those of PUBLISH and SUBSCRIBE below.
        def __init__(self, name="", clean=True, will=None, manual_ack=False, **values):
            super().__init__(mqtt.CallbackAPIVersion.VERSION2, name, protocol=mqtt.MQTTv5, manual_ack=manual_ack, reconnect_on_failure=False)
            self.opened, self.answers, self.published, self.messages, self.ended = (queue.Queue() for _ in range(5))
            self.on_connect = lambda c, u, flags, reason, p: self.opened.put((flags, reason.value, p))
            self.on_subscribe = lambda c, u, mid, reasons, p: self.answers.put(([r.value for r in reasons], p))
            self.on_publish = lambda c, u, mid, reason, p: self.published.put((reason.value, p))
            self.on_message = lambda c, u, m: self.messages.put(m)
            self.on_disconnect = lambda c, u, flags, reason, p: self.ended.put((reason.value, p))
            if will: self.will_set(will[0], will[1], 1, properties=properties(PacketTypes.WILLMESSAGE, {"WillDelayInterval": will[2]}))
            self.connect("127.0.0.1", MQTT_PORT, clean_start=clean, properties=properties(PacketTypes.CONNECT, values))
            self.loop_start()
            flags, self.reason, self.told = self.opened.get(timeout=60)
            self.is_present = flags.session_present

        def ask(self, filter, qos=1, options=None, **values):
            options = options or SubscribeOptions(qos=qos)
            self.subscribe(filter, options=options, properties=properties(PacketTypes.SUBSCRIBE, values))
            return self.answers.get(timeout=60)

        # Returns the reason and the properties of the acknowledgement.
        def send(self, topic, payload="", qos=1, retain=False, **values):
            self.publish(topic, payload, qos, retain, properties(PacketTypes.PUBLISH, values))
            return self.published.get(timeout=60)

        def get(self): return self.messages.get(timeout=60)

        def payload(self): return self.get().payload.decode()

        def end(self): return self.ended.get(timeout=60)

        # Without DISCONNECT.
        def lose(self):
            self.socket().shutdown(socket.SHUT_RDWR)
            self.end()


    """
}
