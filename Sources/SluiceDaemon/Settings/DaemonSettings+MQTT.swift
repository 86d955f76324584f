import SluiceCommand
import SluiceDoors

extension DaemonSettings {
  /// Limits of MQTT clients.
  static func mqttLimits() -> [Setting] {
    [
      .duration(
        "mqtt-keep-alive", \.doors.mqtt.keepAlive, in: MQTTLimits.keepAlives,
        "The longest keep-alive time of an MQTT 5 client; 0s for any time, including none."),
      .duration(
        "mqtt-session-expiry", \.doors.mqtt.sessionExpiry, in: MQTTLimits.sessionExpiries,
        "How long an MQTT session is kept at most without its client; 0s for as long as the client requests."
      ),
      .count(
        "mqtt-receive-maximum", \.doors.mqtt.receiveMaximum, in: MQTTLimits.counts,
        "Unacknowledged messages at QoS 1 and 2 that an MQTT client may send."),
      .size(
        "mqtt-packet", \.doors.mqtt.packet, in: MQTTLimits.packets,
        "The longest packet of an MQTT client; follows --max-record when that needs more."),
      .count(
        "mqtt-topic-aliases", \.doors.mqtt.topicAliases, in: MQTTLimits.aliases,
        "Topic aliases that an MQTT 5 client may set."),
      .count(
        "mqtt-subscriptions", \.doors.mqtt.subscriptions, in: MQTTLimits.counts,
        "Subscriptions of an MQTT client at a time."),
      .count(
        "mqtt-sessions", \.doors.mqtt.sessions, in: MQTTLimits.sessionCounts,
        "MQTT sessions at a time that outlive their connections."),
      .size(
        "mqtt-sessions-bytes", \.doors.mqtt.sessionBytes, in: MQTTLimits.sessionSizes,
        "The memory of these sessions. Beyond it, new sessions and new subscriptions in sessions are refused."
      ),
      .size(
        "mqtt-wills-bytes", \.doors.mqtt.willBytes, in: MQTTLimits.sessionSizes,
        "The memory of delayed MQTT wills. Beyond it, a will is published when its client disconnects."
      ),
    ]
  }
}
