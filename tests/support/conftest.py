"""Keep pytest out of the sample hosts: their tests belong to them."""

collect_ignore_glob = ["*_host"]
