import SluiceMQTT
import SluiceWire
import TestSupport

@testable import SluiceDoors

/// Passes arbitrary bytes to all code that reads stored MQTT sessions.
enum MQTTValueProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// A session in the topic of sessions.
    case mqttKeptSessions
    /// A record of the log that the nodes of a cluster share.
    case mqttRosterRecords
  }

  static func run(_ target: Target, on bytes: [UInt8]) throws {
    switch target {
    case .mqttKeptSessions: try session(bytes)
    case .mqttRosterRecords: try record(bytes)
    }
  }

  /// A session that can be read is equal after writing and reading it again.
  private static func session(_ bytes: [UInt8]) throws {
    guard let session = try? MQTTKeptSession(decoding: bytes) else { return }
    guard try MQTTKeptSession(decoding: session.encoded) == session else {
      throw ProbeViolation("a session isn't the same when it is read again")
    }
    _ = session.expires
    _ = try? MQTTSessionState(decoding: session.state)
  }

  /// The same for a record, which a roster must accept.
  private static func record(_ bytes: [UInt8]) throws {
    guard let record = withExactMemory(bytes, { MQTTRosterRecord(decoding: $0) }) else { return }
    guard record.encoded.withUnsafeBytes({ MQTTRosterRecord(decoding: $0) }) == record else {
      throw ProbeViolation("\(record) isn't the same when it is read again")
    }
    var roster = MQTTRoster()
    var effects: [MQTTRoster.Effect] = []
    for key in [MQTTHub.Key(identity: "i", clientID: "c"), nil] {
      _ = roster.apply(record, of: key, &effects)
    }
  }
}
