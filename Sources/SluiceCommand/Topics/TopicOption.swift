import SluiceWire

/// One setting of a topic in text form: an option of `sluice topic create` and of `sluiced`, and as `NAME=VALUE` in a rule.
public struct TopicOption: Sendable {
  /// As an option of a command.
  public let option: CommandOption
  /// Reads the value into settings.
  public let read: @Sendable (String, inout TopicSettings) throws(ValueError) -> Void
  /// The value in the notation of the option; nil if the settings don't state it.
  public let write: @Sendable (TopicSettings) -> String?

  public var name: String { option.name }

  /// Every setting, in the order in which they are shown.
  public static var all: [TopicOption] {
    [
      limit(
        "replay-records", "N", \.replayRecords, "Records kept for late subscribers, or 'everything'.",
        read: { text throws(ValueError) in try Values.count()(text) }, write: { String($0) }),
      limit(
        "replay-bytes", "SIZE", \.replayBytes,
        "Bytes kept for late subscribers, or 'everything'. Without it a topic in memory keeps 64MiB, a durable one everything.",
        read: { text throws(ValueError) in try ByteSize.parse(text) }, write: { ByteSize.exact($0) }),
      limit(
        "replay-age", "TIME", \.replayAge,
        "How long records are kept for late subscribers, or 'everything'.",
        read: { text throws(ValueError) in UInt64(try TimeSpan.milliseconds(text)) },
        write: { TimeSpan.exact(.milliseconds(Int64(clamping: $0))) }),
      TopicOption(
        "scope", "SCOPE", \.scope,
        "forever: records outlive subscribers; while-connected: when the last subscriber leaves or the topic ends, it drops them and starts over.",
        [("forever", .forever), ("while-connected", .whileConnected)]),
      TopicOption(
        "flow", "FLOW", \.flow,
        "free: producers run ahead; lossless: they wait for the slowest subscriber; fastest: for the quickest.",
        [("free", .free), ("lossless", .lossless), ("fastest", .fastest)]),
      TopicOption(
        name: "buffer-records", placeholder: "N",
        help: "With flow lossless or fastest: records that producers may publish beyond the requested ones.",
        read: { text, settings throws(ValueError) in settings.bufferRecords = try Values.count()(text) },
        write: { $0.bufferRecords.map { String($0) } }),
      TopicOption(
        name: "buffer-bytes", placeholder: "SIZE",
        help: "With flow lossless or fastest: bytes that producers may publish beyond the records sent.",
        read: { text, settings throws(ValueError) in settings.bufferBytes = try ByteSize.parse(text) },
        write: { $0.bufferBytes.map { ByteSize.exact($0) } }),
      TopicOption(
        "without-subscribers", "WHAT", \.withoutSubscribers,
        "With flow lossless or fastest, while there is no subscriber: buffer (fill the buffer, then wait), hold (wait), or drop (run ahead).",
        [("buffer", .buffer), ("hold", .hold), ("drop", .drop)]),
      connect,
      TopicOption(
        "lag", "POLICY", \.lag,
        "A subscriber that falls behind the floor: skip (it gets the number of dropped records) or fail. A subscriber can choose another policy.",
        [("skip", .skip), ("fail", .fail)]),
      TopicOption(
        "auto-delete", "on|off", \.autoDelete,
        "on: the topic is deleted when no client has been attached to it for a while.",
        [("on", true), ("off", false)]),
      TopicOption(
        "compact", "on|off", \.compact,
        "on: late subscribers get only the newest record of each key; every record needs a key, and an empty payload deletes it.",
        [("on", true), ("off", false), ("true", true), ("false", false)], bare: "on"),
      TopicOption(
        "storage", "WHERE", \.storage,
        "memory: the topic ends with the broker's process; durable: it is also on disk (the broker needs --data DIR).",
        [("memory", .memory), ("durable", .durable)]),
      sync, whenProducerLost,
    ]
  }

  private static var connect: TopicOption {
    TopicOption(
      name: "connect", placeholder: "WHEN",
      help:
        "When records are requested from producers: immediate, auto:N (from N subscribers until the last one leaves), auto-stay:N (from N subscribers on, permanently), or manual.",
      choices: ["immediate", "auto", "auto-stay", "manual"],
      read: { text, settings throws(ValueError) in
        let subscribers = Values.count(in: 1...UInt64(UInt32.max))
        switch Values.word(text) {
        case ("auto", let count?): settings.connect = .auto(UInt32(try subscribers(count)))
        case ("auto-stay", let count?): settings.connect = .autoStay(UInt32(try subscribers(count)))
        default:
          settings.connect = try Values.choice([
            "immediate": .immediate, "auto": .auto(1), "auto-stay": .autoStay(1), "manual": .manual,
          ])(text)
        }
      },
      write: { settings in
        switch settings.connect {
        case nil: nil
        case .immediate: "immediate"
        case .auto(let count): "auto:\(count)"
        case .autoStay(let count): "auto-stay:\(count)"
        case .manual: "manual"
        }
      })
  }

  private static var whenProducerLost: TopicOption {
    TopicOption(
      name: "when-producer-lost", placeholder: "WHAT",
      help:
        "When the last producer has left without ending the topic: wait (for the next one), or fail:TIME (unless one comes within that time).",
      choices: ["wait", "fail:30s"],
      read: { text, settings throws(ValueError) in
        switch Values.word(text) {
        case ("wait", nil): settings.whenProducerLost = .wait
        case ("fail", let time?): settings.whenProducerLost = .fail(after: try interval(time, or: []))
        default:
          let forms = "it can be wait, or fail:TIME like fail:30s"
          throw ValueError(
            "there is no '\(text)'\(Spelling.advice(for: text, in: ["wait"], otherwise: forms))")
        }
      },
      write: { settings in
        switch settings.whenProducerLost {
        case nil: nil
        case .wait: "wait"
        case .fail(let time): "fail:" + TimeSpan.exact(.milliseconds(Int64(time)))
        }
      })
  }

  /// Several settings under a name. Single settings override it, in any order.
  public static var preset: TopicOption {
    TopicOption(
      name: "preset", placeholder: "NAME",
      help:
        "A preset of settings: shared[:N] (one run of a source for all subscribers, with N records replayed), shared-forever[:N] (the source keeps running after the last subscriber), replayed:N, back-pressured, one-shot.",
      choices: TopicPreset.choices,
      read: { text, settings throws(ValueError) in
        settings = settings.completed(by: try TopicPreset.parse(text))
      },
      write: { _ in nil })
  }

  /// The options of one topic, and of a rule: presets and every setting.
  public static var ofTopics: [TopicOption] { [preset] + all }

  private static var sync: TopicOption {
    TopicOption(
      name: "sync", placeholder: "WHEN",
      help:
        "When records of a durable topic are on disk: always (before a subscriber gets them), TIME (within that time, like 50ms), or os (when the system writes them).",
      choices: ["always", "os"],
      read: { text, settings throws(ValueError) in
        switch text {
        case "always": settings.sync = .always
        case "os": settings.sync = .os
        default: settings.sync = .interval(try interval(text))
        }
      },
      write: { settings in
        switch settings.sync {
        case nil: nil
        case .always: "always"
        case .interval(let time): TimeSpan.exact(.milliseconds(Int64(time)))
        case .os: "os"
        }
      })
  }

  private static func interval(
    _ text: String, or words: [String] = ["always", "os"]
  ) throws(ValueError) -> UInt32 {
    guard words.isEmpty || text.first?.isNumber == true else {
      let forms = "it can be always, os or a time like 50ms"
      throw ValueError("there is no '\(text)'\(Spelling.advice(for: text, in: words, otherwise: forms))")
    }
    let time = UInt64(try TimeSpan.milliseconds(text))
    guard time > 0 else {
      throw ValueError("'\(text)' is too short; write \(words.isEmpty ? "" : "always, or ")at least 1ms")
    }
    guard let time = UInt32(exactly: time) else {
      throw ValueError("'\(text)' is too long; 49 days is the most")
    }
    return time
  }

  private init(
    name: String, placeholder: String, help: String, bare: String? = nil, choices: [String] = [],
    read: @escaping @Sendable (String, inout TopicSettings) throws(ValueError) -> Void,
    write: @escaping @Sendable (TopicSettings) -> String?
  ) {
    option = CommandOption(name, value: placeholder, bare: bare, help: help, choices: choices)
    self.read = read
    self.write = write
  }

  /// A setting that is one of a few words.
  private init<Value: Equatable & Sendable>(
    _ name: String, _ placeholder: String,
    _ target: any WritableKeyPath<TopicSettings, Value?> & Sendable, _ help: String,
    _ words: [(String, Value)], bare: String? = nil
  ) {
    self.init(
      name: name, placeholder: placeholder, help: help, bare: bare, choices: words.map(\.0),
      read: { text, settings throws(ValueError) in
        settings[keyPath: target] = try Values.choice(words)(text)
      },
      write: { settings in words.first { $0.1 == settings[keyPath: target] }?.0 })
  }

  /// A limit, for which all ones mean none.
  private static func limit(
    _ name: String, _ placeholder: String, _ target: any WritableKeyPath<TopicSettings, UInt64?> & Sendable,
    _ help: String, read: @escaping @Sendable (String) throws(ValueError) -> UInt64,
    write: @escaping @Sendable (UInt64) -> String
  ) -> TopicOption {
    TopicOption(
      name: name, placeholder: placeholder, help: help, choices: ["everything"],
      read: { text, settings throws(ValueError) in
        settings[keyPath: target] = text == "everything" ? TopicSettings.unlimited : try read(text)
      },
      write: { settings in
        settings[keyPath: target].map { $0 == TopicSettings.unlimited ? "everything" : write($0) }
      })
  }
}

extension DroppedRecords.Cause {
  /// The limit's setting, as in "replay-bytes", or "trim".
  public var name: String {
    switch self {
    case .records: "replay-records"
    case .bytes: "replay-bytes"
    case .age: "replay-age"
    case .trim: "trim"
    }
  }
}

extension TopicOption {
  /// The option with its value in `settings` as the default.
  public func option(standard settings: TopicSettings) -> CommandOption {
    var option = option
    option.standard = write(settings)
    return option
  }

  /// The settings that are stated, by name, as they would be read.
  public static func written(_ settings: TopicSettings) -> [(name: String, value: String)] {
    all.compactMap { option in option.write(settings).map { (option.name, $0) } }
  }

  /// Reads a setting by its name into `settings`.
  ///
  /// - Throws: ``ValueError`` for a name that no setting has, and for a value that the setting can't have.
  public static func read(
    _ name: String, _ value: String, into settings: inout TopicSettings
  ) throws(ValueError) {
    guard let option = ofTopics.first(where: { $0.name == name }) else {
      throw ValueError(
        "there is no setting '\(name)'\(Spelling.advice(for: name, in: ofTopics.map(\.name)))")
    }
    do {
      try option.read(value, &settings)
    } catch {
      throw ValueError("\(option.name): \(error)")
    }
  }

  /// A topic's settings from a command line; those that aren't given are nil.
  public static func settings(_ arguments: ParsedArguments) throws(UsageError) -> TopicSettings {
    var settings = TopicSettings()
    for option in ofTopics {
      _ = try arguments.value(option.name) { text throws(ValueError) in try option.read(text, &settings) }
    }
    return settings
  }
}
