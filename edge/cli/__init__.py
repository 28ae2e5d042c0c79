"""The command line: settings, migrations, the embedded servers, everything in one go."""
