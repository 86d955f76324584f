import SluiceCommand

/// The manual pages that the daemon can print.
enum ManualChoice: String, CaseIterable {
  case program = "sluiced"
  case file = "sluiced.toml"

  var text: String {
    switch self {
    case .program:
      ManualPage.render(DaemonPage.page(), section: 8, seeAlso: ["sluiced.toml(5)", "sluice(1)"])
    case .file: ConfigurationManual.render()
    }
  }
}
