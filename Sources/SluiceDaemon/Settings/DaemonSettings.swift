import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceWire

/// Everything that the daemon is told when it starts.
struct DaemonSettings {
  var broker = BrokerConfiguration()
  var logLevel = LogLevel.info
  var logFormat = LogFormat.text
  /// Where durable topics are; nil for a broker without.
  var data: String?
  /// How much memory records and connections may take before producers wait.
  var memory = MemorySetting.percent(75)
  /// Whether somebody has said how many connections there may be.
  var isConnectionLimitGiven = false
  /// The most that is stored there, in bytes.
  var storageLimit = 1 << 40
  /// Who may connect, and what they may do.
  var access = AccessSettings()
  /// How `tls://` addresses are protected.
  var tls = TLSSettings()

  /// The settings, in the order of the help.
  static func all() -> [Setting] {
    listeners() + tlsSettings() + accessSettings() + storage() + topics() + limits() + logs() + unavailable()
  }

  /// - Throws: `UsageError` for a value that can't be read, or that the broker can't work with.
  init(_ arguments: ParsedArguments) throws(UsageError) {
    self.init()
    let settings = Self.all()
    for setting in settings { try setting.apply(arguments, &self) }
    if arguments.has("max-record"), !arguments.has("max-frame") {
      let needed = broker.limits.record.addingReportingOverflow(64 << 10)
      broker.limits.frame = max(broker.limits.frame, needed.overflow ? .max : needed.partialValue)
    }
    isConnectionLimitGiven = arguments.has("max-connections")
    if case .bytes(let bytes) = memory { broker.limits.memory = Int(clamping: bytes) }
    do {
      try broker.validate()
    } catch {
      throw Self.renamed(error.description, by: settings)
    }
    try checkStorage()
    try checkAccess()
    _ = try tlsOptions()
  }

  private func checkStorage() throws(UsageError) {
    guard data == nil else {
      guard storageLimit >= 1 << 20 else {
        throw UsageError(
          "--storage-limit: '\(ByteSize.exact(UInt64(storageLimit)))' is too little; at least 1MiB")
      }
      return
    }
    if storageLimit != Self().storageLimit {
      throw UsageError("--storage-limit: is about durable topics; say where they are kept with --data DIR")
    }
    let advice = "durable topics need a directory; name one with --data DIR"
    if broker.topicDefaults.storage == .durable { throw UsageError("--storage: \(advice)") }
    if let rule = broker.topicRules.first(where: { $0.settings.storage == .durable }) {
      throw UsageError("--topic-rule: '\(rule.pattern) storage=durable': \(advice)")
    }
  }

  init() {}

  /// The broker speaks of its configuration; whoever started the daemon thinks of options.
  private static func renamed(_ message: String, by settings: [Setting]) -> UsageError {
    for setting in settings {
      guard let path = setting.path, message.hasPrefix("\(path):") else { continue }
      return UsageError("--\(setting.option.name)\(message.dropFirst(path.count))")
    }
    return UsageError(message)
  }

  // MARK: The settings

  private static func listeners() -> [Setting] {
    let standard = DaemonSettings().broker.listen.map(\.description).joined(separator: ",")
    let listen = CommandOption(
      "listen", value: "ADDR",
      help:
        "Accept connections there: HOST:PORT, [V6]:PORT, either behind tls://, or unix:PATH; port 0 takes a free one.",
      isRepeatable: true, standard: standard)
    let loops = CommandOption(
      "loops", value: "N", help: "Event loops, each a thread.", standard: "one per core")
    return [
      Setting(listen, path: "listen") { arguments, settings throws(UsageError) in
        let addresses = try arguments.values("listen", Values.address)
        if !addresses.isEmpty { settings.broker.listen = addresses }
      },
      Setting(loops, path: "loops") { arguments, settings throws(UsageError) in
        if let count = try arguments.value("loops", Values.count(in: 1...1024)) {
          settings.broker.loops = Int(count)
        }
      },
    ]
  }

  private static func storage() -> [Setting] {
    [
      Setting(
        CommandOption(
          "data", value: "DIR",
          help: "Keep durable topics there. Made if it isn't there; for this broker alone.")
      ) { arguments, settings throws(UsageError) in
        guard let path = arguments.text("data") else { return }
        guard !path.isEmpty else { throw UsageError("--data: the directory's name is empty") }
        settings.data = path
      },
      .size(
        "storage-limit", \.storageLimit, path: "storage.limit",
        "The most that durable topics may take of the disk, with what belongs to them. At least 1 MiB."),
    ]
  }

  private static func topics() -> [Setting] {
    let standard = DaemonSettings().broker.topicDefaults
    let rule = CommandOption(
      "topic-rule", value: "RULE",
      help:
        "Settings of new topics whose names match a pattern: 'orders.> flow=lossless replay-records=100'. The first that matches counts.",
      isRepeatable: true)
    return TopicOption.all.map { option in
      Setting(option.option(standard: option.write(standard))) { arguments, settings throws(UsageError) in
        guard let text = arguments.text(option.name) else { return }
        do {
          try option.read(text, &settings.broker.topicDefaults)
        } catch {
          throw UsageError("--\(option.name): \(error)")
        }
      }
    } + [
      Setting(rule) { arguments, settings throws(UsageError) in
        let rules = try arguments.values("topic-rule", TopicRuleText.parse)
        settings.broker.topicRules = rules.map { TopicRule(pattern: $0.pattern, settings: $0.settings) }
      }
    ]
  }

  private static func logs() -> [Setting] {
    [
      Setting(
        "log-level", "LEVEL", \.logLevel, "What is logged on standard error: debug, info, warning or error.",
        read: Values.choice(["debug": .debug, "info": .info, "warning": .warning, "error": .error]),
        write: { $0.name }),
      Setting(
        "log-format", "FORMAT", \.logFormat, "How: text or json, one object a line.",
        read: Values.choice(["text": .text, "json": .json]), write: { $0.rawValue }),
      Setting(
        CommandOption(
          "admin", value: "off", help: "There is no admin listener in this version.", standard: "off")
      ) { arguments, _ throws(UsageError) in
        if let text = arguments.text("admin"), text != "off" {
          throw UsageError(
            "--admin: there is no admin listener in this version; leave it out, or say --admin off")
        }
      },
    ]
  }

  /// What is announced for later is refused for what it is, rather than as a typing error.
  private static func unavailable() -> [Setting] {
    let byOptions = "sluiced is configured by options and environment variables (see sluiced --help)"
    return [
      ("config", "FILE", "--config: there is no configuration file in this version; \(byOptions)"),
      (
        "check-config", "FILE", "--check-config: there is no configuration file in this version; \(byOptions)"
      ),
    ].map { name, value, reason in
      Setting(CommandOption(name, value: value, help: "", unavailable: reason)) { _, _ in }
    }
  }
}
