"""From files to radiographs, from annotations to masks, and back again."""
