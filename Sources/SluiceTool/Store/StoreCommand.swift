import SluiceCommand

/// `sluice store`
struct StoreCommand: CommandGroup {
  static var needsBroker: Bool { false }

  static var members: [any Command.Type] {
    [
      StoreStatCommand.self, StoreVerifyCommand.self, StoreRepairCommand.self, StoreExportCommand.self,
      StoreImportCommand.self, StoreCompactCommand.self,
    ]
  }

  static let page = CommandPage(
    "sluice store", summary: "inspect, verify, repair, export and compact what a broker has on disk",
    operands: [Operand("COMMAND")],
    details: [
      """
      DIR is the directory that sluiced keeps durable topics in. The commands work on it directly, without a broker: stop the one that \
      has it open first.
      """
    ],
    examples: [
      .init("What is there, and how much space it takes.", "sluice store stat /var/lib/sluice"),
      .init("Whether all of it can be read.", "sluice store verify /var/lib/sluice"),
      .init("A backup.", "sluice store export /var/lib/sluice topics.sluice"),
    ], commands: members.map { $0.page })

  static let json = CommandOption("json", help: "Print an object a line.")
  static let progress = CommandOption(
    "progress",
    help: "Say every second how far it is. On a terminal it is said now and then without this.")
  static let quiet = CommandOption("quiet", help: "Say nothing of what went well.")
}
