/// How much an event matters.
enum LogLevel: Int, Comparable {
  case debug
  case info
  case warning
  case error

  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

  var name: String {
    switch self {
    case .debug: "debug"
    case .info: "info"
    case .warning: "warning"
    case .error: "error"
    }
  }
}

/// How an event is written.
enum LogFormat: String {
  /// `2026-02-03T04:05:06.789Z info    started loops=2`
  case text
  /// `{"time":"2026-02-03T04:05:06.789Z","level":"info","message":"started","loops":2}`
  case json
}
