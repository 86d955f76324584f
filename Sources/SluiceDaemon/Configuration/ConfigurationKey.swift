/// A part of the configuration file, in the order in which it is explained.
enum ConfigurationSection: String, CaseIterable {
  /// What stands in front of all sections.
  case general = ""
  case tls
  case access
  case storage
  case topics
  case limits
  case log

  /// What its keys are about.
  var summary: String {
    switch self {
    case .general: "Where the broker can be reached."
    case .tls: "How addresses behind tls:// are protected."
    case .access: "Who may connect, and what they may do. Without users, token-keys and auth nobody is asked."
    case .storage: "Where durable topics are kept."
    case .topics: "What new topics are, as far as neither their creator nor a rule says otherwise."
    case .limits: "Bounds on what clients can make the broker do."
    case .log: "What is said on standard error."
    }
  }

  var settings: [Setting] {
    let settings =
      switch self {
      case .general: DaemonSettings.listeners() + DaemonSettings.adminSettings()
      case .tls: DaemonSettings.tlsSettings()
      case .access: DaemonSettings.accessSettings()
      case .storage: DaemonSettings.storage()
      case .topics: DaemonSettings.topics()
      case .limits: DaemonSettings.limits()
      case .log: DaemonSettings.logs()
      }
    return settings.map { $0.placed(in: self) }
  }

  /// What rules for new topics are called, each a section of its own.
  static let rule = "rule"
  /// The key of a rule that isn't a setting of topics.
  static let pattern = "pattern"
}

/// Where a setting stands in the file: under the name of its option, of which the section's name is left out.
struct ConfigurationKey: Hashable, CustomStringConvertible {
  let section: ConfigurationSection
  let name: String

  init(of option: String, in section: ConfigurationSection) {
    self.section = section
    let prefix = section.rawValue + "-"
    name = option.hasPrefix(prefix) ? String(option.dropFirst(prefix.count)) : option
  }

  /// "limits.max-record", "listen".
  var description: String { section == .general ? name : "\(section.rawValue).\(name)" }
}
