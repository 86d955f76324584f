import SluiceCommand

/// The manual page of the configuration file, generated from the table of settings.
enum ConfigurationManual {
  static func render() -> String {
    var text = ManualText("sluiced.toml", section: 5, summary: "the configuration of the Sluice broker")
    text.section("DESCRIPTION")
    let introduction = """
      The configuration is a file in TOML. sluiced reads it when it is started with --config FILE, or with SLUICED_CONFIG in its environment. Each setting can be left \
      out, and has its default then. A key has the name of its option, without the name of its section. The option, and its environment variable, override the file.

      Counts are whole numbers; sizes are texts like "64MiB", times are texts like "30s" or "24h". Names of files are relative to the directory of the configuration.

      sluiced --check-config FILE prints all mistakes in a file. On SIGHUP, a running broker reads the file again. Defaults and rules for new topics, users, keys, \
      permissions, certificates and the log change at once. The log names other changed settings, which need a restart. A file with a mistake changes nothing.
      """
    for paragraph in introduction.split(separator: "\n") { text.paragraph(String(paragraph)) }
    for section in ConfigurationSection.allCases {
      text.section(section == .general ? "KEYS IN FRONT OF ALL SECTIONS" : "[\(section.rawValue)]")
      text.paragraph(section.summary)
      for setting in section.settings where setting.option.unavailable == nil {
        guard let key = setting.key else { continue }
        text.entry("\(key.name) = \(notation(of: setting.option))", explanation(of: setting.option))
      }
    }
    let preset = TopicOption.preset.option
    text.section("[[\(ConfigurationSection.rule)]]")
    text.paragraph(
      """
      Settings of new topics whose names match a pattern. There may be several rules; the first one that matches applies. A rule has a \
      \(ConfigurationSection.pattern), and any of the keys of [topics]; other settings come from [topics].
      """)
    text.entry(
      "\(ConfigurationSection.pattern) = \"PATTERN\"",
      "The pattern of topic names: * matches one token, a last > one or more.")
    text.entry(
      "\(preset.name) = \"\(preset.value ?? "")\"",
      "\(preset.help) Other keys of the rule override it, in any order.")
    text.section("EXAMPLES")
    text.example("A broker with durable orders.", example)
    text.section("SEE ALSO")
    text.paragraph("sluiced(8), sluice(1)")
    return text.text
  }

  static let example = """
    listen = ["127.0.0.1:7420", "tls://0.0.0.0:7421"]

    [tls]
    cert = "server.pem"
    key = "server.key"

    [access]
    users = "users"
    permissions = "permissions"

    [storage]
    data = "/var/lib/sluice"

    [limits]
    max-record = "4MiB"

    [[rule]]
    pattern = "orders.>"
    storage = "durable"
    sync = "always"
    """

  /// The notation of a value in the file.
  private static func notation(of option: CommandOption) -> String {
    if option.isRepeatable { return "[\"\(option.value ?? "")\"]" }
    switch option.kind {
    case .boolean: return "true|false"
    case .count: return (["N"] + option.choices.map { "\"\($0)\"" }).joined(separator: "|")
    default: return "\"\(option.value ?? "")\""
    }
  }

  private static func explanation(of option: CommandOption) -> String {
    var notes: [String] = []
    if let standard = option.standard { notes.append("default \(literal(standard, option))") }
    notes.append("--\(option.name)")
    return "\(option.help) (\(notes.joined(separator: "; ")))"
  }

  /// An option's value in the notation of the file.
  static func literal(_ text: String, _ option: CommandOption) -> String {
    if option.isRepeatable {
      return "[" + text.split(separator: ",").map { "\"\($0)\"" }.joined(separator: ", ") + "]"
    }
    switch option.kind {
    case .boolean: return text == "on" || text == "true" ? "true" : "false"
    case .count where UInt64(text) != nil: return text
    default: return "\"\(text)\""
    }
  }
}
