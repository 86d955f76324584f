/// Completion for zsh, with its `_arguments`.
enum ZshCompletion {
  static func render(_ commands: [CompletionScript.Command], _ topics: CompletionScript.TopicSource?)
    -> String
  {
    let program = commands[0].program
    let functions = commands.map(function).joined(separator: "\n")
    let name = "_" + CompletionScript.identifier(program)
    // In a directory of fpath, the file is the function; if it is sourced, it must register the function.
    return """
      #compdef \(program)
      # Completion of \(program) for zsh.

      \(functions)
      \(topics.map(offering) ?? "")\
      if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
        \(name) "$@"
      else
        compdef \(name) \(program)
      fi

      """
  }

  private static func offering(_ topics: CompletionScript.TopicSource) -> String {
    """
    # Offers the names of topics that begin with the word that is being written.
    \(CompletionScript.topicsFunction)() {
      local -a names
    \(topics.gathering(from: #""${(@Q)_sluice_line}""#))
      names=(${(f)"$(\(topics.command) "${(Q)PREFIX}" $given </dev/null 2>/dev/null)"})
      compadd -a names
    }


    """
  }

  private static func function(_ command: CompletionScript.Command) -> String {
    let name = "_" + CompletionScript.identifier(command.name)
    var arguments = command.options.map(option)
    guard !command.members.isEmpty else {
      arguments += command.operands.enumerated().map(operand)
      return """
        \(name)() {
          _arguments -S \\
        \(arguments.map { "    \($0)" }.joined(separator: " \\\n"))
        }

        """
    }
    arguments += ["'1:command:->command'", "'*::argument:->argument'"]
    let members = command.members.map { member in
      quoted("\(member.word):\(member.summary)")
    }
    // Functions of commands see only their part of the line.
    let line = command.path.isEmpty ? "  local -a _sluice_line=(\"${(@)words[2,CURRENT-1]}\")\n" : ""
    return """
      \(name)() {
        local curcontext=$curcontext state line
      \(line)\
        local -a commands
        typeset -A opt_args
        _arguments -C -S \\
      \(arguments.map { "    \($0)" }.joined(separator: " \\\n")) && return
        case $state in
          command)
            commands=(
      \(members.map { "        \($0)" }.joined(separator: "\n"))
            )
            _describe command commands
            ;;
          argument)
            (( $+functions[\(name)_$words[1]] )) && \(name)_$words[1]
            ;;
        esac
      }

      """
  }

  private static func option(_ option: CommandOption) -> String {
    let repeats = option.isRepeatable ? "*" : ""
    let help = escaped(option.help)
    guard let value = option.value else { return quoted("\(repeats)--\(option.name)[\(help)]") }
    let separator = option.bare == nil ? "=" : "=-"
    let optional = option.bare == nil ? "" : ":"
    let action = action(.init(option))
    return quoted("\(repeats)--\(option.name)\(separator)[\(help)]:\(optional)\(escaped(value)):\(action)")
  }

  private static func operand(_ number: Int, _ operand: Operand) -> String {
    let action = action(.init(operand))
    return switch operand.arity {
    case .required: quoted("\(number + 1):\(operand.name):\(action)")
    case .optional: quoted("\(number + 1)::\(operand.name):\(action)")
    case .repeated: quoted("*:\(operand.name):\(action)")
    }
  }

  private static func action(_ completion: CompletionScript.Completion) -> String {
    switch completion {
    case .nothing: " "
    case .files: "_files"
    case .directories: "_files -/"
    case .topics: CompletionScript.topicsFunction
    case .words(let words): "(\(words.map(escaped).joined(separator: " ")))"
    }
  }

  /// Escapes the characters that are special for `_arguments`.
  private static func escaped(_ text: String) -> String {
    var result = ""
    for character in text {
      if "\\[]:".contains(character) { result += "\\" }
      result.append(character)
    }
    return result
  }

  private static func quoted(_ text: String) -> String {
    "'" + text.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
  }
}
