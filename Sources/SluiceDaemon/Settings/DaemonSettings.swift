import SluiceBroker
import SluiceCommand
import SluiceDoors
import SluiceIO
import SluiceWire

/// All settings of the daemon.
struct DaemonSettings {
  var broker = BrokerConfiguration()
  var logLevel = LogLevel.info
  var logFormat = LogFormat.text
  /// The most bytes of waiting lines.
  var logBuffer = LogBuffer.standardCapacity
  /// The directory of durable topics; nil for a broker without them.
  var data: String?
  /// The memory for records and connections at which producers wait.
  var memory = MemorySetting.percent(75)
  /// Whether the operator has set a limit on connections other than the default.
  var isConnectionLimitGiven = false
  /// The most bytes in `data`.
  var storageLimit = 1 << 40
  /// Authentication and authorisation.
  var access = AccessSettings()
  /// How `tls://` addresses are protected.
  var tls = TLSSettings()
  /// Addresses of protocols other than the broker's own.
  var doors = DoorOptions()
  var admin = AdminSettings()
  var cluster = ClusterSettings()

  /// The settings, in the order of the help.
  static func all() -> [Setting] { ConfigurationSection.allCases.flatMap(\.settings) }

  /// Reads the command line and the environment, and then a file, which they override.
  ///
  /// - Parameter arguments: the command line and the environment.
  /// - Throws: `UsageError` for a value that can't be parsed, or that the broker can't use. It names the option, the variable or the place in the file.
  init(_ arguments: ParsedArguments, file: ConfigurationFile? = nil) throws(UsageError) {
    var arguments = arguments
    if let file {
      for value in file.values { arguments.add(value.option, value.texts, from: value.origin) }
      if let first = file.rules.first {
        arguments.add("topic-rule", file.rules.map(\.text), from: first.origin)
      }
    }
    let settings = Self.all()
    do throws(UsageError) {
      try self.init(arguments, settings)
    } catch {
      throw Self.attributed(error, arguments, file, settings)
    }
  }

  private init(_ arguments: ParsedArguments, _ settings: [Setting]) throws(UsageError) {
    self.init()
    for setting in settings { try setting.apply(arguments, &self) }
    if arguments.has("max-record"), !arguments.has("max-frame") {
      let needed = broker.limits.record.addingReportingOverflow(64 << 10)
      broker.limits.frame = max(broker.limits.frame, needed.overflow ? .max : needed.partialValue)
    }
    if arguments.has("max-record"), !arguments.has("mqtt-packet") {
      let needed = broker.limits.record.addingReportingOverflow(MQTTLimits.packetOverhead)
      let most = MQTTLimits.packets.upperBound
      doors.mqtt.packet = max(doors.mqtt.packet, needed.overflow ? most : min(needed.partialValue, most))
    }
    // The default value counts as not given.
    isConnectionLimitGiven =
      arguments.has("max-connections") && broker.limits.connections != BrokerLimits().connections
    if case .bytes(let bytes) = memory { broker.limits.memory = Int(clamping: bytes) }
    do {
      try broker.validate()
    } catch {
      throw Self.renamed(error.description, by: settings)
    }
    try checkCluster()
    try checkStorage()
    try checkAccess()
    try checkOrigins()
    try checkAdmin()
    _ = try tlsOptions()
  }

  /// Replaces the option at the beginning of a message by the variable or the key from which the value came.
  private static func attributed(
    _ error: UsageError, _ arguments: ParsedArguments, _ file: ConfigurationFile?, _ settings: [Setting]
  ) -> UsageError {
    let message = error.description
    let option = message.dropFirst(2).prefix { $0 != ":" }
    guard message.hasPrefix("--"), var origin = arguments.origin(of: String(option)) else { return error }
    let rest = message.dropFirst(2 + option.count)
    guard let file, origin.hasPrefix(file.path) else { return UsageError(origin + rest) }
    if option == "topic-rule", let rule = file.rules.first(where: { rest.contains("'\($0.pattern) ") }) {
      origin = rule.origin
    }
    // Advice names keys instead of options. The longest option comes first, since others may be its prefix.
    var advice = String(rest)
    for setting in settings.sorted(by: { $0.option.name.count > $1.option.name.count }) {
      let key = setting.key?.description ?? "[[\(ConfigurationSection.rule)]]"
      advice.replace("--\(setting.option.name)", with: key)
    }
    return UsageError(origin + advice)
  }

  private func checkStorage() throws(UsageError) {
    guard data == nil else {
      guard storageLimit >= 1 << 20 else {
        throw UsageError(
          "--storage-limit: '\(ByteSize.exact(UInt64(storageLimit)))' is too small; write at least 1MiB")
      }
      return
    }
    if storageLimit != Self().storageLimit {
      throw UsageError("--storage-limit: needs a directory for durable topics; name one with --data DIR")
    }
    if cluster.isOn { return }
    let advice = "durable topics need a directory; name one with --data DIR"
    if broker.topicDefaults.storage == .durable { throw UsageError("--storage: \(advice)") }
    if let rule = broker.topicRules.first(where: { $0.settings.storage == .durable }) {
      throw UsageError("--topic-rule: '\(rule.pattern) storage=durable': \(advice)")
    }
  }

  init() {}

  /// Replaces the broker's own name of a setting by the option.
  private static func renamed(_ message: String, by settings: [Setting]) -> UsageError {
    for setting in settings {
      guard let path = setting.path, message.hasPrefix("\(path):") else { continue }
      return UsageError("--\(setting.option.name)\(message.dropFirst(path.count))")
    }
    return UsageError(message)
  }

  // MARK: The settings

  static func listeners() -> [Setting] {
    let standard = DaemonSettings().broker.listen.map(\.description).joined(separator: ",")
    let listen = CommandOption(
      "listen", value: "ADDR",
      help:
        "Accept connections at HOST:PORT or [V6]:PORT, with tls://, http://, https://, ws:// or wss:// (WebSocket), mqtt:// or mqtts:// in front, or at unix:PATH. Port 0 takes a free port.",
      isRepeatable: true, standard: standard)
    let loops = CommandOption(
      "loops", value: "N", help: "The number of event loops, each with a thread; auto: one per core.",
      standard: "auto",
      choices: ["auto"])
    return [
      Setting(
        listen, path: "listen", write: { $0.broker.listen.map(\.description).joined(separator: ",") }
      ) { arguments, settings throws(UsageError) in
        let addresses = try arguments.values("listen", Values.address)
        if !addresses.isEmpty { settings.broker.listen = addresses }
      },
      Setting(loops, path: "loops", write: { $0.broker.loops.map { String($0) } ?? "auto" }) {
        arguments, settings throws(UsageError) in
        guard arguments.text("loops") != "auto" else { return settings.broker.loops = nil }
        if let count = try arguments.value("loops", Values.count(in: 1...1024)) {
          settings.broker.loops = Int(count)
        }
      },
    ]
  }

  /// The settings of gateways' addresses.
  static func doorSettings() -> [Setting] {
    let origins = CommandOption(
      "origins", value: "ORIGIN",
      help:
        "An origin, such as https://example.org, whose web pages may connect over WebSocket and HTTP; any for all origins. Programs other than browsers may always connect.",
      isRepeatable: true)
    let originHeaders = CommandOption(
      "origin-headers", value: "NAME",
      help:
        "A field that such pages may send in requests over HTTP, beside those that the gateway knows: X-Request-Id.",
      isRepeatable: true)
    return [
      Setting.duration(
        "http-keepalive", \.doors.keepalive,
        "The silence after which a stream of server-sent events gets a comment, so that connections of vanished clients end; 0 for never."
      ),
      Setting(origins, write: { Self.write($0.doors) }) { arguments, settings throws(UsageError) in
        let origins = try arguments.values("origins", Self.origin)
        settings.doors.allowsAnyOrigin = origins.contains("any")
        settings.doors.origins = Set(origins.filter { $0 != "any" })
      },
      .choice(
        "origin-credentials", "on|off", \.doors.allowsCredentials,
        "Whether browsers may send cookies, certificates and passwords of their own with the requests of such pages over HTTP. Needs the origins by name.",
        ["off": false, "on": true]),
      Setting(
        originHeaders,
        write: { $0.doors.requestFields.isEmpty ? nil : $0.doors.requestFields.joined(separator: ",") }
      ) {
        arguments, settings throws(UsageError) in
        settings.doors.requestFields = try arguments.values("origin-headers", Self.fieldName)
      },
      Setting.duration(
        "http-link-time", \.doors.linkTime, in: .milliseconds(1) ... .seconds(1 << 31),
        "For how long a signed link of HTTP is valid that states no time."),
      Setting.duration(
        "http-link-longest", \.doors.longestLinkTime, in: .milliseconds(1) ... .seconds(1 << 31),
        "For how long a signed link may be valid."),
      .choice(
        "websocket-compression", "on|off", \.doors.compressesWebSockets,
        "Whether WebSocket messages are compressed for clients that offer permessage-deflate, such as browsers. This costs processor time for each client.",
        ["off": false, "on": true]),
    ]
  }

  private static func write(_ doors: DoorOptions) -> String? {
    if doors.allowsAnyOrigin { return "any" }
    return doors.origins.isEmpty ? nil : doors.origins.sorted().joined(separator: ",")
  }

  private func checkOrigins() throws(UsageError) {
    guard doors.allowsCredentials, doors.allowsAnyOrigin || doors.origins.isEmpty else { return }
    throw UsageError(
      "--origin-credentials: pages of any origin could use what browsers send by themselves; name the origins with --origins"
    )
  }

  /// The name of a field.
  private static func fieldName(_ text: String) throws(ValueError) -> String {
    guard DoorOptions.isFieldName(text) else {
      throw ValueError("'\(text)' isn't the name of a header; write a name such as X-Request-Id")
    }
    return text
  }

  /// `any`, or the origin of a web page: a scheme, a host, and perhaps a port.
  private static func origin(_ text: String) throws(ValueError) -> String {
    if text == "any" { return text }
    guard let mark = text.firstRange(of: "://"), mark.lowerBound > text.startIndex,
      mark.upperBound < text.endIndex, !text[mark.upperBound...].contains("/")
    else { throw ValueError("'\(text)' is not an origin; write SCHEME://HOST, SCHEME://HOST:PORT, or any") }
    return text.lowercased()
  }

  static func storage() -> [Setting] {
    [
      .path(
        "data", "DIR", \.data,
        "The directory of durable topics, created if needed. No other broker may use it."),
      .size(
        "storage-limit", \.storageLimit, path: "storage.limit",
        "The most disk space for durable topics, including cursors and groups. At least 1MiB."),
    ]
  }

  static func topics() -> [Setting] {
    let standard = DaemonSettings().broker.topicDefaults
    let rule = CommandOption(
      "topic-rule", value: "RULE",
      help:
        "Settings of new topics whose names match a pattern: 'orders.> flow=lossless replay-records=100', or 'ticks.> preset=shared:2'. The first rule that matches applies.",
      isRepeatable: true, hasSpaces: true)
    return TopicOption.all.map { option in
      Setting(option.option(standard: standard), write: { option.write($0.broker.topicDefaults) }) {
        arguments, settings throws(UsageError) in
        _ = try arguments.value(option.name) { text throws(ValueError) in
          try option.read(text, &settings.broker.topicDefaults)
        }
      }
    } + [
      Setting(rule, write: Self.rules) { arguments, settings throws(UsageError) in
        let rules = try arguments.values("topic-rule", TopicRuleText.parse)
        settings.broker.topicRules = rules.map { TopicRule(pattern: $0.pattern, settings: $0.settings) }
      }
    ]
  }

  private static func rules(_ settings: DaemonSettings) -> String? {
    let rules = settings.broker.topicRules.map { TopicRuleText.write($0.pattern, $0.settings) }
    return rules.isEmpty ? nil : rules.joined(separator: ",")
  }

  static func logs() -> [Setting] {
    [
      .choice(
        "log-level", "LEVEL", \.logLevel, "The least severe level to log: debug, info, warning or error.",
        ["debug": .debug, "info": .info, "warning": .warning, "error": .error]),
      .choice(
        "log-format", "FORMAT", \.logFormat, "The format of the log: text, or json with an object a line.",
        ["text": .text, "json": .json]),
      .size(
        "log-buffer", \.logBuffer, in: 64 << 10...1 << 30,
        "Bytes of lines that may wait for the log's reader. Further lines are dropped, and counted in the log."
      ),
    ]
  }
}
