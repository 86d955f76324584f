/// A part of the configuration file, in the order of the manual.
enum ConfigurationSection: String, CaseIterable {
  /// The keys before all sections.
  case general = ""
  case tls
  case access
  case storage
  case cluster
  case topics
  case limits
  case log

  /// The subject of its keys.
  var summary: String {
    switch self {
    case .general: "Where the broker can be reached."
    case .tls: "How addresses behind tls:// are protected."
    case .access:
      "Authentication and permissions. Without users, token-keys and auth, clients don't authenticate."
    case .storage: "Where durable topics are kept."
    case .cluster:
      "Being a node of a cluster, which keeps durable topics in its engine. A broker without engine stands alone."
    case .topics: "What new topics are, as far as neither their creator nor a rule says otherwise."
    case .limits: "Bounds on what clients can make the broker do."
    case .log: "What is said on standard error."
    }
  }

  var settings: [Setting] {
    let settings =
      switch self {
      case .general:
        DaemonSettings.listeners() + DaemonSettings.adminSettings() + DaemonSettings.doorSettings()
      case .tls: DaemonSettings.tlsSettings()
      case .access: DaemonSettings.accessSettings()
      case .storage: DaemonSettings.storage()
      case .cluster: DaemonSettings.clusterSettings()
      case .topics: DaemonSettings.topics()
      case .limits: DaemonSettings.limits()
      case .log: DaemonSettings.logs()
      }
    return settings.map { $0.placed(in: self) }
  }

  /// The name of the sections with rules for new topics.
  static let rule = "rule"
  /// The key of a rule that isn't a topic setting.
  static let pattern = "pattern"
}

/// A setting's key in the file: a section, and the option's name without the section's prefix. `--cluster` is `cluster.engine` there.
struct ConfigurationKey: Hashable, CustomStringConvertible {
  let section: ConfigurationSection
  let name: String

  init(of option: String, in section: ConfigurationSection) {
    self.section = section
    let prefix = section.rawValue + "-"
    if section == .cluster, option == section.rawValue {
      name = "engine"
    } else {
      name = option.hasPrefix(prefix) ? String(option.dropFirst(prefix.count)) : option
    }
  }

  /// "limits.max-record", "listen".
  var description: String { section == .general ? name : "\(section.rawValue).\(name)" }
}
