import TestSupport

/// Gives any frames to the client's side: no broker may harm it.
enum ClientProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// Frames to a session, and what the client does with one besides: see ``ClientSessionScene``.
    case clientSessions
    /// Frames to a whole client: see ``ClientScene``.
    case clients
  }

  static func run(_ target: Target, on bytes: [UInt8]) throws {
    switch target {
    case .clientSessions: try ClientSessionScene.play(ProbeInput(bytes))
    case .clients: try ClientScene.play(ProbeInput(bytes))
    }
  }
}
