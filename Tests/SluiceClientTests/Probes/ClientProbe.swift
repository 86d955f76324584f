import TestSupport

/// Passes arbitrary frames to the client: no broker may harm it.
enum ClientProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// Frames to a session, and the client's own actions on it: see ``ClientSessionScene``.
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
