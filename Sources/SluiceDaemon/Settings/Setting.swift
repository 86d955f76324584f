import SluiceBroker
import SluiceCommand
import SluiceWire

/// One setting of the daemon, as an option, an environment variable and a key of the file: its name, its parser and its target.
struct Setting {
  typealias Reader<Value> = (String) throws(ValueError) -> Value

  let option: CommandOption
  /// The broker's name for it in messages about invalid configurations.
  let path: String?
  /// Its key in the file; nil for rules, which are sections of their own.
  private(set) var key: ConfigurationKey?
  /// Returns its value in the notation of the option; nil if it isn't set.
  let write: (DaemonSettings) -> String?
  let apply: (ParsedArguments, inout DaemonSettings) throws(UsageError) -> Void

  init(
    _ option: CommandOption, path: String? = nil, write: @escaping (DaemonSettings) -> String?,
    apply: @escaping (ParsedArguments, inout DaemonSettings) throws(UsageError) -> Void
  ) {
    var option = option
    if option.unavailable == nil { option.environment = Self.variable(for: option.name) }
    self.option = option
    self.path = path
    self.write = write
    self.apply = apply
  }

  /// A setting with one value, which is stored at `target`.
  init<Value>(
    _ name: String, _ placeholder: String, _ target: WritableKeyPath<DaemonSettings, Value>,
    path: String? = nil, _ help: String, choices: [String] = [], read: @escaping Reader<Value>,
    write: @escaping (Value) -> String
  ) {
    let standard = write(DaemonSettings()[keyPath: target])
    let option = CommandOption(
      name, value: placeholder, help: help, standard: standard, choices: choices)
    self.init(option, path: path, write: { write($0[keyPath: target]) }) {
      arguments, settings throws(UsageError) in
      if let value = try arguments.value(name, read) { settings[keyPath: target] = value }
    }
  }

  /// `SLUICED_MAX_RECORD` for `--max-record`.
  static func variable(for option: String) -> String {
    "SLUICED_" + option.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
  }

  /// Returns the setting with its key in a section of the file.
  func placed(in section: ConfigurationSection) -> Setting {
    var setting = self
    setting.key = option.name == "topic-rule" ? nil : ConfigurationKey(of: option.name, in: section)
    return setting
  }
}

extension Setting {
  /// One of a few words.
  static func choice<Value: Equatable>(
    _ name: String, _ placeholder: String, _ target: WritableKeyPath<DaemonSettings, Value>, _ help: String,
    _ meanings: KeyValuePairs<String, Value>
  ) -> Setting {
    Setting(
      name, placeholder, target, help, choices: meanings.map(\.key), read: Values.choice(meanings),
      write: { value in meanings.first { $0.value == value }?.key ?? "" })
  }

  private static var brokerLimits: WritableKeyPath<DaemonSettings, BrokerLimits> { \.broker.limits }

  /// A limit that the broker checks, and that the broker's messages call `limits.` and `path`.
  static func count<Number: FixedWidthInteger>(
    _ name: String, _ limit: WritableKeyPath<BrokerLimits, Number>, _ path: String, _ help: String
  ) -> Setting {
    Setting(
      name, "N", brokerLimits.appending(path: limit), path: "limits.\(path)", help,
      read: { text throws(ValueError) in
        Number(try Values.count(in: 0...UInt64(clamping: Number.max))(text))
      },
      write: { String($0) })
  }

  /// A limit in bytes that the broker checks.
  static func size(
    _ name: String, _ limit: WritableKeyPath<BrokerLimits, Int>, _ path: String, _ help: String
  ) -> Setting {
    size(name, brokerLimits.appending(path: limit), path: "limits.\(path)", help)
  }

  /// A whole number in a range, which the broker doesn't check.
  static func count(
    _ name: String, _ target: WritableKeyPath<DaemonSettings, Int>, in range: ClosedRange<UInt64>,
    _ help: String
  ) -> Setting {
    Setting(
      name, "N", target, help,
      read: { text throws(ValueError) in Int(clamping: try Values.count(in: range)(text)) },
      write: { String($0) })
  }

  /// An amount of bytes.
  ///
  /// - Parameter range: checked here, since the broker doesn't.
  static func size(
    _ name: String, _ target: WritableKeyPath<DaemonSettings, Int>, path: String? = nil,
    in range: ClosedRange<Int> = 0...Int.max, _ help: String
  ) -> Setting {
    Setting(
      name, "SIZE", target, path: path, help,
      read: { text throws(ValueError) in
        guard let bytes = Int(exactly: try ByteSize.parse(text)) else {
          throw ValueError("'\(text)' is too large")
        }
        guard range.contains(bytes) else {
          let (least, most) = (UInt64(range.lowerBound), UInt64(range.upperBound))
          throw ValueError("'\(text)' isn't in \(ByteSize.exact(least)) to \(ByteSize.exact(most))")
        }
        return bytes
      },
      write: { ByteSize.exact(UInt64($0)) })
  }

  /// - Parameter range: checked here, since the broker doesn't.
  static func duration(
    _ name: String, _ target: WritableKeyPath<DaemonSettings, Duration>, path: String? = nil,
    in range: ClosedRange<Duration> = .zero ... .seconds(Int64.max), _ help: String
  ) -> Setting {
    Setting(
      name, "TIME", target, path: path, help,
      read: { text throws(ValueError) in
        let time = try TimeSpan.parse(text)
        guard range.contains(time) else {
          throw ValueError(
            "'\(text)' isn't in \(TimeSpan.exact(range.lowerBound)) to \(TimeSpan.exact(range.upperBound))")
        }
        return time
      }, write: TimeSpan.exact)
  }

  /// The name of a file, `FILE`, or of a directory, `DIR`.
  static func path(
    _ name: String, _ placeholder: String, _ target: WritableKeyPath<DaemonSettings, String?>, _ help: String
  ) -> Setting {
    let option = CommandOption(name, value: placeholder, help: help)
    return Setting(option, write: { $0[keyPath: target] }) { arguments, settings throws(UsageError) in
      guard let path = arguments.text(name) else { return }
      guard !path.isEmpty else {
        throw UsageError("--\(name): the name of the \(placeholder == "DIR" ? "directory" : "file") is empty")
      }
      settings[keyPath: target] = path
    }
  }
}
