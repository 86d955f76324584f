import SluiceCommand

/// A setting of the broker, as visitors see it.
public struct AppliedSetting: Hashable, Sendable {
  /// Its name as an option.
  public var name: String
  /// The section of the configuration's file; empty for keys in front of all sections.
  public var section: String
  /// The value as a configuration would write it; nil if the setting isn't set.
  public var value: String?
  public var standard: String?
  public var help: String

  public init(name: String, section: String, value: String?, standard: String?, help: String) {
    (self.name, self.section, self.value) = (name, section, value)
    (self.standard, self.help) = (standard, help)
  }

  public var isChanged: Bool { value != standard }
}

/// The broker's settings in the API.
enum SettingsJSON {
  static func list(_ settings: [AppliedSetting]) -> JSON {
    ["settings": .array(settings.map(object))]
  }

  private static func object(_ setting: AppliedSetting) -> JSON {
    [
      "name": .text(setting.name), "section": .text(setting.section), "value": .textOrNull(setting.value),
      "default": .textOrNull(setting.standard), "changed": .flag(setting.isChanged),
      "help": .text(setting.help),
    ]
  }
}
