import SluiceCommand
import SluiceDoors

extension DaemonSettings {
  /// Limits of MQTT clients.
  static func mqttLimits() -> [Setting] {
    [
      .duration(
        "mqtt-keep-alive", \.doors.mqtt.keepAlive, in: MQTTLimits.keepAlives,
        "The longest keep alive time of a client of MQTT 5; 0s for any, none among them."),
      .duration(
        "mqtt-session-expiry", \.doors.mqtt.sessionExpiry, in: MQTTLimits.sessionExpiries,
        "How long a session of MQTT is kept at most when its client is gone; 0s for as long as the client asks for."
      ),
      .count(
        "mqtt-receive-maximum", \.doors.mqtt.receiveMaximum, in: MQTTLimits.counts,
        "Messages at QoS 1 and 2 that a client of MQTT may have under way to the broker."),
      .size(
        "mqtt-packet", \.doors.mqtt.packet, in: MQTTLimits.packets,
        "The longest packet of a client of MQTT; follows --max-record when that needs more."),
      .count(
        "mqtt-topic-aliases", \.doors.mqtt.topicAliases, in: MQTTLimits.aliases,
        "Topic aliases that a client of MQTT 5 may set."),
      .count(
        "mqtt-subscriptions", \.doors.mqtt.subscriptions, in: MQTTLimits.counts,
        "Subscriptions of a client of MQTT at a time."),
      .count(
        "mqtt-sessions", \.doors.mqtt.sessions, in: MQTTLimits.sessionCounts,
        "Sessions of MQTT that outlive their connections, at a time."),
      .size(
        "mqtt-sessions-bytes", \.doors.mqtt.sessionBytes, in: MQTTLimits.sessionSizes,
        "The memory of all of them; clients that want one more, or one with more subscriptions, are refused beyond it."
      ),
      .size(
        "mqtt-wills-bytes", \.doors.mqtt.willBytes, in: MQTTLimits.sessionSizes,
        "The memory of wills of MQTT whose delay isn't over; beyond it a will is published as soon as its client is gone."
      ),
    ]
  }
}
