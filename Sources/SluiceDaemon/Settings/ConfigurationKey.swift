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
    case .tls: "Certificates for addresses behind tls://."
    case .access:
      "Authentication and permissions. Without users, token-keys and auth, clients don't authenticate."
    case .storage: "The directory of durable topics."
    case .cluster:
      "Membership in a cluster, whose engine stores durable topics. Without engine, the broker is a single node."
    case .topics: "The defaults of new topics, unless their creator or a rule sets another value."
    case .limits: "Limits on the work and the memory that clients can cause."
    case .log: "The log on standard error."
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
