import SluiceBroker
import SluiceCommand
import SluiceWire

/// One thing that the daemon can be told, as an option or by the environment: what it is called, how it is read, and where it goes.
struct Setting {
  typealias Reader<Value> = (String) throws(ValueError) -> Value

  let option: CommandOption
  /// What the broker calls it when it refuses the configuration.
  let path: String?
  let apply: (ParsedArguments, inout DaemonSettings) throws(UsageError) -> Void

  init(
    _ option: CommandOption, path: String? = nil,
    apply: @escaping (ParsedArguments, inout DaemonSettings) throws(UsageError) -> Void
  ) {
    var option = option
    if option.unavailable == nil { option.environment = Self.variable(for: option.name) }
    self.option = option
    self.path = path
    self.apply = apply
  }

  /// A setting with one value, which goes to `target`.
  init<Value>(
    _ name: String, _ placeholder: String, _ target: WritableKeyPath<DaemonSettings, Value>,
    path: String? = nil,
    _ help: String, read: @escaping Reader<Value>, write: (Value) -> String
  ) {
    let standard = write(DaemonSettings()[keyPath: target])
    self.init(CommandOption(name, value: placeholder, help: help, standard: standard), path: path) {
      arguments, settings throws(UsageError) in
      if let value = try arguments.value(name, read) { settings[keyPath: target] = value }
    }
  }

  /// `SLUICED_MAX_RECORD` for `--max-record`.
  static func variable(for option: String) -> String {
    "SLUICED_" + option.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()
  }
}

extension Setting {
  /// A whole number of anything.
  static func count<Number: FixedWidthInteger>(
    _ name: String, _ target: WritableKeyPath<DaemonSettings, Number>, path: String, _ help: String
  ) -> Setting {
    Setting(
      name, "N", target, path: path, help,
      read: { text throws(ValueError) in
        Number(try Values.count(in: 0...UInt64(clamping: Number.max))(text))
      },
      write: { String($0) })
  }

  /// An amount of bytes.
  static func size(
    _ name: String, _ target: WritableKeyPath<DaemonSettings, Int>, path: String, _ help: String
  ) -> Setting {
    Setting(
      name, "SIZE", target, path: path, help,
      read: { text throws(ValueError) in
        guard let bytes = Int(exactly: try ByteSize.parse(text)) else {
          throw ValueError("'\(text)' is too large")
        }
        return bytes
      },
      write: { ByteSize.exact(UInt64($0)) })
  }

  static func duration(
    _ name: String, _ target: WritableKeyPath<DaemonSettings, Duration>, _ help: String
  ) -> Setting {
    Setting(name, "TIME", target, help, read: TimeSpan.parse, write: TimeSpan.exact)
  }
}
